// SPDX-License-Identifier: Apache-2.0
// Sparse arrays: they take nothing themselves, and what is bound to them lives as long as it is bound.

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

namespace {

CUDA_ARRAY3D_DESCRIPTOR sparse(size_t width, size_t height, size_t depth, unsigned channels, unsigned flags = 0) {
    return floats(width, height, depth, channels, CUDA_ARRAY3D_SPARSE | flags);
}

CUmemGenericAllocationHandle tile_pool(const Report& report, size_t bytes, bool for_tiles = true) {
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    prop.allocFlags.usage = for_tiles ? CU_MEM_CREATE_USAGE_TILE_POOL : 0;
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQUAL(cuMemCreate(&handle, bytes, &prop, 0), CUDA_SUCCESS);
    return handle;
}

CUarrayMapInfo part(CUarray array, unsigned x, unsigned y, unsigned width, unsigned height) {
    CUarrayMapInfo info{};
    info.resourceType = CU_RESOURCE_TYPE_ARRAY;
    info.resource.array = array;
    info.subresource.sparseLevel.offsetX = x;
    info.subresource.sparseLevel.offsetY = y;
    info.subresource.sparseLevel.extentWidth = width;
    info.subresource.sparseLevel.extentHeight = height;
    info.subresource.sparseLevel.extentDepth = 1;
    info.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP;
    info.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC;
    info.deviceBitMask = 1;
    return info;
}

CUresult bind(CUarrayMapInfo info, CUmemGenericAllocationHandle memory, unsigned long long offset = 0) {
    info.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
    info.memHandle.memHandle = memory;
    info.offset = offset;
    return cuMemMapArrayAsync(&info, 1, nullptr);
}
CUresult unbind(CUarrayMapInfo info) { return cuMemMapArrayAsync(&info, 1, nullptr); }

}  // namespace

TEST_CASE("a sparse array takes nothing, and says what its tiles are") {
    struct Case {
        CUDA_ARRAY3D_DESCRIPTOR descriptor;
        unsigned width, height, depth;
    };
    const Case cases[] = {{sparse(1000, 1000, 0, 1), 128, 128, 1},
                          {sparse(1000, 1000, 0, 4), 64, 64, 1},
                          {sparse(1000, 1000, 100, 2), 32, 16, 16},
                          {sparse(1000, 1000, 100, 2, CUDA_ARRAY3D_LAYERED), 128, 64, 1}};
    for (const Case& one : cases) {
        CHECK(in_child(one_t4, [&](const Report& report) {
                  use_device(report);
                  const size_t free = free_bytes();
                  CUarray array = nullptr, plain = nullptr;
                  CUDA_ARRAY_SPARSE_PROPERTIES properties{};
                  EXPECT_EQUAL(cuArray3DCreate(&array, &one.descriptor), CUDA_SUCCESS);
                  EXPECT_EQUAL(free_bytes(), free);
                  EXPECT_EQUAL(cuArrayGetSparseProperties(&properties, array), CUDA_SUCCESS);
                  EXPECT_EQUAL(properties.tileExtent.width, one.width);
                  EXPECT_EQUAL(properties.tileExtent.height, one.height);
                  EXPECT_EQUAL(properties.tileExtent.depth, one.depth);
                  CUDA_ARRAY3D_DESCRIPTOR descriptor = one.descriptor;
                  descriptor.Flags = 0;
                  descriptor.Depth = 0;
                  EXPECT_EQUAL(cuArray3DCreate(&plain, &descriptor), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuArrayGetSparseProperties(&properties, plain), CUDA_ERROR_INVALID_VALUE);
                  float value = 0;
                  EXPECT_EQUAL(cuMemcpyAtoH(&value, array, 0, sizeof value), CUDA_ERROR_NOT_SUPPORTED);
                  EXPECT_EQUAL(cuArrayDestroy(array), CUDA_SUCCESS);
              }) == "");
    }
}

TEST_CASE("memory that is bound to tiles stays until the last of them is unbound, bound anew or gone") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const size_t free = free_bytes();
              CUarray array = nullptr;
              const CUDA_ARRAY3D_DESCRIPTOR descriptor = sparse(1000, 300, 0, 4);  // 16 by 5 tiles, the last ones cut
              EXPECT_EQUAL(cuArray3DCreate(&array, &descriptor), CUDA_SUCCESS);
              const CUmemGenericAllocationHandle a = tile_pool(report, 4 * MiB), b = tile_pool(report, 6 * MiB);
              EXPECT_EQUAL(bind(part(array, 0, 0, 1000, 300), b), CUDA_SUCCESS);  // 80 tiles: 5 MiB
              EXPECT_EQUAL(bind(part(array, 0, 0, 128, 64), a, 2 * MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemRelease(a), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemRelease(b), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), free - 10 * MiB);
              EXPECT_EQUAL(unbind(part(array, 0, 0, 64, 64)), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), free - 10 * MiB);
              EXPECT_EQUAL(unbind(part(array, 64, 0, 64, 64)), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), free - 6 * MiB);
              EXPECT_EQUAL(cuArrayDestroy(array), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), free);
          }) == "");
}

TEST_CASE("what can't be bound is refused") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUarray array = nullptr;
              const CUDA_ARRAY3D_DESCRIPTOR descriptor = sparse(1000, 300, 0, 4);
              EXPECT_EQUAL(cuArray3DCreate(&array, &descriptor), CUDA_SUCCESS);
              const CUmemGenericAllocationHandle pool = tile_pool(report, 2 * MiB);
              EXPECT_EQUAL(bind(part(array, 0, 0, 64, 64), tile_pool(report, 2 * MiB, false)),
                           CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(bind(part(array, 1, 0, 64, 64), pool), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(bind(part(array, 0, 0, 65, 64), pool), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(bind(part(array, 0, 0, 1001, 64), pool), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(bind(part(array, 0, 0, 0, 64), pool), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(bind(part(array, 0, 0, 64, 64), pool, 100), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(bind(part(array, 0, 0, 1000, 192), pool), CUDA_ERROR_INVALID_VALUE);  // 48 tiles in 32
              EXPECT_EQUAL(bind(part(array, 0, 0, 64, 64), 4096), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(bind(part(nullptr, 0, 0, 64, 64), pool), CUDA_ERROR_INVALID_HANDLE);
              CUarrayMapInfo info = part(array, 0, 0, 64, 64);
              info.memHandle.memHandle = pool;
              EXPECT_EQUAL(unbind(info), CUDA_ERROR_INVALID_VALUE);
              info = part(array, 0, 0, 64, 64);
              info.deviceBitMask = 3;
              EXPECT_EQUAL(bind(info, pool), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(bind(part(array, 0, 0, 64, 64), pool), CUDA_SUCCESS);
          }) == "");
}
