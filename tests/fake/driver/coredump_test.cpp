// SPDX-License-Identifier: Apache-2.0
// Dumps of a GPU after an exception, of which there are none here.

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

TEST_CASE("whether exceptions are dumped can be said and asked for all contexts, and nothing else about dumps") {
    std::string said;
    CHECK(in_child(
              one_t4,
              [](const Report& report) {
                  bool on = true;
                  size_t size = 1;
                  const auto which = CU_COREDUMP_ENABLE_ON_EXCEPTION;
                  use_device(report);
                  // H200, driver 580.159.04, 2026-11-27.
                  EXPECT_EQUAL(cuCoredumpGetAttributeGlobal(which, &on, &size), CUDA_SUCCESS);
                  EXPECT(!on);
                  EXPECT_EQUAL(size, size_t{1});
                  on = true;
                  EXPECT_EQUAL(cuCoredumpSetAttributeGlobal(which, &on, &size), CUDA_SUCCESS);
                  on = false;
                  EXPECT_EQUAL(cuCoredumpGetAttributeGlobal(which, &on, &size), CUDA_SUCCESS);
                  EXPECT(on);
                  // As documented: without a value the size is told.
                  size = 99;
                  EXPECT_EQUAL(cuCoredumpGetAttributeGlobal(which, nullptr, &size), CUDA_SUCCESS);
                  EXPECT_EQUAL(size, size_t{1});
                  size = 0;
                  EXPECT_EQUAL(cuCoredumpGetAttributeGlobal(which, &on, &size), CUDA_ERROR_INVALID_VALUE);
                  EXPECT_EQUAL(cuCoredumpSetAttributeGlobal(which, &on, &size), CUDA_ERROR_INVALID_VALUE);
                  EXPECT_EQUAL(cuCoredumpGetAttributeGlobal(which, &on, nullptr), CUDA_ERROR_INVALID_VALUE);
                  EXPECT_EQUAL(cuCoredumpGetAttributeGlobal(CU_COREDUMP_MAX, &on, &size), CUDA_ERROR_INVALID_VALUE);
                  EXPECT_EQUAL(cuCoredumpSetAttributeGlobal(CU_COREDUMP_FILE, &on, &size), CUDA_ERROR_NOT_SUPPORTED);
              },
              &said) == "");
    CHECK(said == "cuslice fake GPU: cuCoredumpSetAttributeGlobal of CU_COREDUMP_FILE and others is not supported\n");
}
