// SPDX-License-Identifier: Apache-2.0
// Mipmapped arrays: what they take, and their levels.

#include <algorithm>
#include <vector>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

TEST_CASE("a mipmapped array takes the bytes of its levels, each rounded up, and no more levels than it can have") {
    struct Case {
        CUDA_ARRAY3D_DESCRIPTOR descriptor;
        unsigned asked;
        std::vector<size_t> levels;  // bytes
    };
    const Case cases[] = {
        {floats(64, 0, 0, 1), 100, {512, 512, 512, 512, 512, 512, 512}},
        {floats(100, 60, 0, 4), 3, {96256, 24064, 6144}},
        {floats(100, 60, 0, 4), 0, {96256}},
        {floats(16, 16, 16, 2), 2, {32768, 4096}},
        {floats(16, 16, 10, 2, CUDA_ARRAY3D_LAYERED), 9, {20480, 5120, 1536, 512, 512}},
    };
    for (const Case& one : cases) {
        CHECK(in_child(one_t4, [&](const Report& report) {
                  use_device(report);
                  const size_t free = free_bytes();
                  CUmipmappedArray mipmap = nullptr;
                  EXPECT_EQUAL(cuMipmappedArrayCreate(&mipmap, &one.descriptor, one.asked), CUDA_SUCCESS);
                  size_t sum = 0;
                  for (const size_t bytes : one.levels)
                      sum += bytes;
                  EXPECT_EQUAL(free_bytes(), free - sum);
                  CUarray level = nullptr, same = nullptr;
                  for (unsigned i = 0; i < one.levels.size(); i++) {
                      CUDA_ARRAY3D_DESCRIPTOR got{};
                      EXPECT_EQUAL(cuMipmappedArrayGetLevel(&level, mipmap, i), CUDA_SUCCESS);
                      EXPECT_EQUAL(cuMipmappedArrayGetLevel(&same, mipmap, i), CUDA_SUCCESS);
                      EXPECT_EQUAL(level, same);
                      EXPECT_EQUAL(cuArray3DGetDescriptor(&got, level), CUDA_SUCCESS);
                      EXPECT_EQUAL(got.Width, std::max<size_t>(one.descriptor.Width >> i, 1));
                  }
                  EXPECT_EQUAL(cuMipmappedArrayGetLevel(&level, mipmap, static_cast<unsigned>(one.levels.size())),
                               CUDA_ERROR_INVALID_VALUE);
                  EXPECT_EQUAL(cuArrayDestroy(same), CUDA_ERROR_INVALID_HANDLE);  // the whole array's
                  EXPECT_EQUAL(cuMipmappedArrayDestroy(mipmap), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMipmappedArrayDestroy(mipmap), CUDA_ERROR_INVALID_HANDLE);
                  EXPECT_EQUAL(cuArray3DGetDescriptor(nullptr, same), CUDA_ERROR_INVALID_VALUE);
                  EXPECT_EQUAL(free_bytes(), free);
              }) == "");
    }
}

TEST_CASE("levels are arrays with contents of their own, and end with their context") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const size_t free = free_bytes();
              const CUDA_ARRAY3D_DESCRIPTOR descriptor = floats(64, 64, 0, 1);
              CUmipmappedArray mipmap = nullptr;
              CUarray levels[2] = {};
              EXPECT_EQUAL(cuMipmappedArrayCreate(&mipmap, &descriptor, 2), CUDA_SUCCESS);
              for (unsigned i = 0; i < 2; i++) {
                  EXPECT_EQUAL(cuMipmappedArrayGetLevel(&levels[i], mipmap, i), CUDA_SUCCESS);
                  const size_t side = 64 >> i;
                  std::vector<float> values(side * side, static_cast<float>(i + 1));
                  CUDA_MEMCPY2D copy{};
                  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
                  copy.srcHost = values.data();
                  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
                  copy.dstArray = levels[i];
                  copy.WidthInBytes = side * sizeof(float);
                  copy.Height = side;
                  EXPECT_EQUAL(cuMemcpy2D(&copy), CUDA_SUCCESS);
                  copy.Height = side + 1;
                  EXPECT_EQUAL(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);
              }
              for (unsigned i = 0; i < 2; i++) {
                  float value = 0;
                  EXPECT_EQUAL(cuMemcpyAtoH(&value, levels[i], 64, sizeof value), CUDA_SUCCESS);
                  EXPECT_EQUAL(value, static_cast<float>(i + 1));
              }
              EXPECT_EQUAL(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
              use_device(report);
              EXPECT_EQUAL(free_bytes(), free);
              EXPECT_EQUAL(cuMipmappedArrayDestroy(mipmap), CUDA_ERROR_INVALID_HANDLE);
          }) == "");
}

TEST_CASE("a mipmapped array that can't be is refused and leaves nothing") {
    CHECK(in_child({{"CUSLICE_FAKE", "laptop-2g"}}, [](const Report& report) {
              use_device(report);
              const size_t free = free_bytes();
              CUmipmappedArray mipmap = nullptr;
              CUDA_ARRAY3D_DESCRIPTOR descriptor = floats(16384, 16384, 0, 4);
              EXPECT_EQUAL(cuMipmappedArrayCreate(&mipmap, &descriptor, 4), CUDA_ERROR_OUT_OF_MEMORY);
              descriptor.NumChannels = 3;
              EXPECT_EQUAL(cuMipmappedArrayCreate(&mipmap, &descriptor, 4), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMipmappedArrayCreate(nullptr, &descriptor, 4), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(free_bytes(), free);
          }) == "");
}
