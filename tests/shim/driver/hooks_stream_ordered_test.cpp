// SPDX-License-Identifier: Apache-2.0
// Memory pools that a program makes, and their end.
#include "tests/catch.h"
#include "tests/shim/within.h"

using namespace cuslice;
using namespace cuslice::tests;

TEST_CASE("a pool's end gives back what it kept, and a refused one nothing") {
    const Within within;
    if (!within)
        return;
    Within::use(0);
    const uint64_t before = Within::used(0);
    CUmemPoolProps wish{};
    wish.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    wish.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemoryPool pool = nullptr, preset = nullptr;
    REQUIRE(cuMemPoolCreate(&pool, &wish) == CUDA_SUCCESS);
    cuuint64_t keep = ~0ull;
    REQUIRE(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep) == CUDA_SUCCESS);
    CUdeviceptr block = 0;
    REQUIRE(cuMemAllocFromPoolAsync(&block, 64 << 20, pool, nullptr) == CUDA_SUCCESS);
    REQUIRE(cuMemFreeAsync(block, nullptr) == CUDA_SUCCESS);
    REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
    CHECK(Within::used(0) >= before + (64 << 20));
    // The one that each GPU begins with has no end.
    REQUIRE(cuDeviceGetDefaultMemPool(&preset, 0) == CUDA_SUCCESS);
    CHECK(cuMemPoolDestroy(preset) != CUDA_SUCCESS);
    CHECK(Within::used(0) >= before + (64 << 20));
    CHECK(cuMemPoolDestroy(nullptr) != CUDA_SUCCESS);
    CHECK(cuMemPoolDestroy(pool) == CUDA_SUCCESS);
    CHECK(Within::used(0) == before);
}
