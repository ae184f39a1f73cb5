// SPDX-License-Identifier: Apache-2.0
// Texture and surface objects: checked, kept, ended.

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

TEST_CASE("a texture reads an array or aligned memory that is there, and tells what it was made of") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const CUDA_ARRAY3D_DESCRIPTOR shape = floats(64, 32, 0, 4);
              CUarray array = nullptr;
              CUdeviceptr memory = 0;
              CUtexObject texture = 0;
              CUDA_RESOURCE_DESC resource{}, given{};
              CUDA_TEXTURE_DESC how{}, told{};
              CUDA_RESOURCE_VIEW_DESC view{};
              EXPECT_EQUAL(cuArray3DCreate(&array, &shape), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAlloc(&memory, 64 * 1024), CUDA_SUCCESS);
              EXPECT_EQUAL(cuTexObjectCreate(&texture, &resource, &how, nullptr), CUDA_ERROR_INVALID_VALUE);
              resource.res.array.hArray = array;
              how.filterMode = CU_TR_FILTER_MODE_LINEAR;
              EXPECT_EQUAL(cuTexObjectCreate(&texture, &resource, &how, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuTexObjectGetResourceDesc(&given, texture), CUDA_SUCCESS);
              EXPECT(given.res.array.hArray == array);
              EXPECT_EQUAL(cuTexObjectGetTextureDesc(&told, texture), CUDA_SUCCESS);
              EXPECT_EQUAL(told.filterMode, CU_TR_FILTER_MODE_LINEAR);
              EXPECT_EQUAL(cuTexObjectGetResourceViewDesc(&view, texture), CUDA_ERROR_INVALID_VALUE);  // it has none
              EXPECT_EQUAL(cuTexObjectDestroy(texture), CUDA_SUCCESS);
              EXPECT_EQUAL(cuTexObjectDestroy(texture), CUDA_ERROR_INVALID_VALUE);
              how.flags = 0x1000;
              EXPECT_EQUAL(cuTexObjectCreate(&texture, &resource, &how, nullptr), CUDA_ERROR_INVALID_VALUE);
              how.flags = 0;
              how.addressMode[1] = static_cast<CUaddress_mode>(9);
              EXPECT_EQUAL(cuTexObjectCreate(&texture, &resource, &how, nullptr), CUDA_ERROR_INVALID_VALUE);
              how = {};
              resource = {};
              resource.resType = CU_RESOURCE_TYPE_LINEAR;
              resource.res.linear = {memory, CU_AD_FORMAT_FLOAT, 1, 64 * 1024};
              EXPECT_EQUAL(cuTexObjectCreate(&texture, &resource, &how, &view), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuTexObjectCreate(&texture, &resource, &how, nullptr), CUDA_SUCCESS);
              resource.res.linear.sizeInBytes++;
              EXPECT_EQUAL(cuTexObjectCreate(&texture, &resource, &how, nullptr), CUDA_ERROR_INVALID_VALUE);
              resource.res.linear = {memory + 4, CU_AD_FORMAT_FLOAT, 1, 1024};
              EXPECT_EQUAL(cuTexObjectCreate(&texture, &resource, &how, nullptr), CUDA_ERROR_INVALID_VALUE);
              resource.resType = CU_RESOURCE_TYPE_PITCH2D;
              resource.res.pitch2D = {memory, CU_AD_FORMAT_FLOAT, 1, 64, 256, 256};
              EXPECT_EQUAL(cuTexObjectCreate(&texture, &resource, &how, nullptr), CUDA_SUCCESS);
              resource.res.pitch2D.height++;
              EXPECT_EQUAL(cuTexObjectCreate(&texture, &resource, &how, nullptr), CUDA_ERROR_INVALID_VALUE);
              resource.res.pitch2D = {memory, CU_AD_FORMAT_FLOAT, 1, 64, 2, 257};
              EXPECT_EQUAL(cuTexObjectCreate(&texture, &resource, &how, nullptr), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}

TEST_CASE("a surface needs an array that was made for one, and ends with its context") {
    CHECK(in_child(one_t4, [](const Report& report) {
              const CUcontext context = use_device(report);
              const CUDA_ARRAY3D_DESCRIPTOR plain = floats(64, 32, 0, 4);
              const CUDA_ARRAY3D_DESCRIPTOR fit = floats(64, 32, 0, 4, CUDA_ARRAY3D_SURFACE_LDST);
              CUDA_RESOURCE_DESC resource{}, given{};
              CUsurfObject surface = 0;
              EXPECT_EQUAL(cuArray3DCreate(&resource.res.array.hArray, &plain), CUDA_SUCCESS);
              EXPECT_EQUAL(cuSurfObjectCreate(&surface, &resource), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuArray3DCreate(&resource.res.array.hArray, &fit), CUDA_SUCCESS);
              EXPECT_EQUAL(cuSurfObjectCreate(&surface, &resource), CUDA_SUCCESS);
              EXPECT_EQUAL(cuSurfObjectGetResourceDesc(&given, surface), CUDA_SUCCESS);
              EXPECT(given.res.array.hArray == resource.res.array.hArray);
              resource.flags = 1;
              EXPECT_EQUAL(cuSurfObjectCreate(&surface, &resource), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
              CUcontext again = nullptr;
              EXPECT_EQUAL(cuDevicePrimaryCtxRetain(&again, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxSetCurrent(context), CUDA_SUCCESS);
              EXPECT_EQUAL(cuSurfObjectDestroy(surface), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}
