// SPDX-License-Identifier: Apache-2.0
// Copies of rows and boxes, and arrays, against a loop.

#include <cstring>
#include <vector>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

TEST_CASE("a box goes to the device and back where it belongs") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              constexpr size_t pitch = 64, height = 8, depth = 4, width = 20;
              std::vector<unsigned char> in(pitch * height * depth), out(in.size(), 0xee);
              for (size_t i = 0; i < in.size(); i++)
                  in[i] = static_cast<unsigned char>(i * 7);
              CUdeviceptr device = 0;
              EXPECT_EQUAL(cuMemAlloc(&device, in.size()), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemsetD8(device, 0x11, in.size()), CUDA_SUCCESS);
              CUDA_MEMCPY3D copy{};
              copy.srcMemoryType = CU_MEMORYTYPE_HOST;
              copy.srcHost = in.data();
              copy.srcPitch = pitch;
              copy.srcHeight = height;
              copy.srcXInBytes = 3;
              copy.srcY = 1;
              copy.srcZ = 1;
              copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
              copy.dstDevice = device;
              copy.dstPitch = pitch;
              copy.dstHeight = height;
              copy.dstXInBytes = 5;
              copy.dstY = 2;
              copy.WidthInBytes = width;
              copy.Height = 5;
              copy.Depth = 3;
              EXPECT_EQUAL(cuMemcpy3D(&copy), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyDtoH(out.data(), device, out.size()), CUDA_SUCCESS);
              std::vector<unsigned char> model(in.size(), 0x11);
              for (size_t z = 0; z < 3; z++) {
                  for (size_t y = 0; y < 5; y++) {
                      std::memcpy(&model[(z * height + y + 2) * pitch + 5], &in[((z + 1) * height + y + 1) * pitch + 3],
                                  width);
                  }
              }
              EXPECT(out == model);
              copy.dstY = 4;
              copy.dstZ = 1;
              EXPECT_EQUAL(cuMemcpy3D(&copy), CUDA_ERROR_INVALID_VALUE);  // 4 + 5 rows are more than 8
              copy.dstY = 0;
              copy.dstZ = 2;
              EXPECT_EQUAL(cuMemcpy3D(&copy), CUDA_ERROR_INVALID_VALUE);  // the last layer lies outside the block
              EXPECT_EQUAL(cuMemcpyDtoH(out.data(), device, out.size()), CUDA_SUCCESS);
              EXPECT(out == model);
          }) == "");
}

TEST_CASE("rows are filled and copied with their pitch") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUdeviceptr device = 0;
              size_t pitch = 0;
              EXPECT_EQUAL(cuMemAllocPitch(&device, &pitch, 12, 3, 4), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemsetD8(device, 1, 3 * pitch), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemsetD2D32(device, pitch, 0x01020304, 3, 3), CUDA_SUCCESS);
              unsigned rows[3][4] = {};
              CUDA_MEMCPY2D copy{};
              copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
              copy.srcDevice = device;
              copy.srcPitch = pitch;
              copy.dstMemoryType = CU_MEMORYTYPE_HOST;
              copy.dstHost = rows;
              copy.dstPitch = 16;
              copy.WidthInBytes = 16;
              copy.Height = 3;
              EXPECT_EQUAL(cuMemcpy2D(&copy), CUDA_SUCCESS);
              for (const auto& row : rows) {
                  EXPECT_EQUAL(row[2], 0x01020304U);
                  EXPECT_EQUAL(row[3], 0x01010101U);
              }
              EXPECT_EQUAL(cuMemsetD2D32(device, pitch, 0, 3, 4), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemsetD2D32(device, 4, 0, 3, 3), CUDA_ERROR_INVALID_VALUE);
              copy.srcMemoryType = static_cast<CUmemorytype>(9);
              EXPECT_EQUAL(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}

TEST_CASE("arrays are charged, described, filled and read") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const size_t before = free_bytes();
              CUarray array = nullptr;
              CUDA_ARRAY_DESCRIPTOR wanted{};
              wanted.Width = 33;
              wanted.Height = 5;
              wanted.Format = CU_AD_FORMAT_FLOAT;
              wanted.NumChannels = 2;
              EXPECT_EQUAL(cuArrayCreate(&array, &wanted), CUDA_SUCCESS);
              EXPECT_EQUAL(before - free_bytes(), (33 * 8 * 5 + 511) / 512 * 512UL);
              CUDA_ARRAY_DESCRIPTOR got{};
              EXPECT_EQUAL(cuArrayGetDescriptor(&got, array), CUDA_SUCCESS);
              EXPECT_EQUAL(got.Width, size_t{33});
              EXPECT_EQUAL(got.NumChannels, 2U);
              std::vector<unsigned char> in(33 * 8 * 5), out(in.size());
              for (size_t i = 0; i < in.size(); i++)
                  in[i] = static_cast<unsigned char>(i);
              EXPECT_EQUAL(cuMemcpyHtoA(array, 0, in.data(), in.size()), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyAtoH(out.data(), array, 0, out.size()), CUDA_SUCCESS);
              EXPECT(in == out);
              EXPECT_EQUAL(cuMemcpyAtoH(out.data(), array, 1, out.size()), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuArrayDestroy(array), CUDA_SUCCESS);
              EXPECT_EQUAL(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
              EXPECT_EQUAL(free_bytes(), before);
              wanted.NumChannels = 3;
              EXPECT_EQUAL(cuArrayCreate(&array, &wanted), CUDA_ERROR_INVALID_VALUE);
              wanted.NumChannels = 1;
              wanted.Format = CU_AD_FORMAT_BC1_UNORM;
              EXPECT_EQUAL(cuArrayCreate(&array, &wanted), CUDA_ERROR_NOT_SUPPORTED);
          }) == "");
}
