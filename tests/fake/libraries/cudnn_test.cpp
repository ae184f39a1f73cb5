// SPDX-License-Identifier: Apache-2.0
// cuDNN: a handle, its stream, and a name for each status. All that computes is refused: exports_test.cpp.

#include <cstring>

#include "tests/catch.h"
#include "tests/fake/libraries/library.h"

using namespace fake_test;

TEST_CASE("cuDNN: a handle has a stream, and the library its version") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              void* library = open_library(report, "libcudnn.so.9");
              void* handle = nullptr;
              CUstream stream = nullptr;
              CUstream got = nullptr;
              int major = 0;
              EXPECT_EQUAL(cuStreamCreate(&stream, CU_STREAM_DEFAULT), CUDA_SUCCESS);
              EXPECT_EQUAL(call<int>(library, "cudnnCreate", &handle), 0);
              EXPECT_EQUAL(call<int>(library, "cudnnSetStream", handle, stream), 0);
              EXPECT_EQUAL(call<int>(library, "cudnnGetStream", handle, &got), 0);
              EXPECT_EQUAL(got, stream);
              EXPECT_EQUAL(call<int>(library, "cudnnGetProperty", 0, &major), 0);
              EXPECT_EQUAL(call<size_t>(library, "cudnnGetVersion") / 10000, static_cast<size_t>(major));
              EXPECT(std::strcmp(call<const char*>(library, "cudnnGetErrorString", 3000),
                                 "CUDNN_STATUS_NOT_SUPPORTED") == 0);
              EXPECT_EQUAL(call<int>(library, "cudnnDestroy", handle), 0);
              EXPECT_EQUAL(call<int>(library, "cudnnDestroy", handle), 1001);  // CUDNN_STATUS_NOT_INITIALIZED
              EXPECT_EQUAL(call<int>(library, "cudnnCreate", static_cast<void**>(nullptr)), 2002);
          }) == "");
}

TEST_CASE("cuDNN: without a GPU it isn't initialised") {
    CHECK(in_child({{"CUSLICE_FAKE", ""}}, [](const Report& report) {
              void* library = open_library(report, "libcudnn.so.9");
              void* handle = nullptr;
              EXPECT_EQUAL(call<int>(library, "cudnnCreate", &handle), 1001);
          }) == "");
}
