// SPDX-License-Identifier: Apache-2.0
// Memory pools that a program makes, and their end.
#include <string>

#include "tests/catch.h"
#include "tests/shim/within.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

constexpr size_t kFar = size_t{2} << 30;  // above the limit by itself

CUdeviceptr taken_besides = 0;
void* real_allocate = nullptr;

/// A driver whose pool takes far more for an allocation than anybody could know beforehand.
CUresult CUDAAPI take_more(CUdeviceptr* address, size_t bytes, CUstream stream) {
    const auto real = reinterpret_cast<decltype(&::cuMemAllocAsync)>(real_allocate);
    const CUresult result = real(address, bytes, stream);
    return result == CUDA_SUCCESS ? real(&taken_besides, kFar, stream) : result;
}

CUresult CUDAAPI take_more_of_pool(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream) {
    const auto real = reinterpret_cast<decltype(&::cuMemAllocFromPoolAsync)>(real_allocate);
    const CUresult result = real(address, bytes, pool, stream);
    return result == CUDA_SUCCESS ? real(&taken_besides, kFar, pool, stream) : result;
}

}  // namespace

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

TEST_CASE("an allocation for which a pool turns out to take too much is given back, and the figure is the driver's") {
    const Within within;
    if (!within)
        return;
    Within::use(0);
    const Function function = GENERATE(Function::cuMemAllocAsync, Function::cuMemAllocAsync_ptsz,
                                       Function::cuMemAllocFromPoolAsync, Function::cuMemAllocFromPoolAsync_ptsz);
    CAPTURE(kFunctions[static_cast<size_t>(function)].symbol);
    CUmemoryPool preset = nullptr, pool = nullptr;
    REQUIRE(cuDeviceGetDefaultMemPool(&preset, 0) == CUDA_SUCCESS);
    CUmemPoolProps wish{};
    wish.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    wish.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    REQUIRE(cuMemPoolCreate(&pool, &wish) == CUDA_SUCCESS);
    REQUIRE(cuDeviceSetMemPool(0, pool) == CUDA_SUCCESS);
    const uint64_t before = Within::used(0);
    constexpr size_t kBytes = 8 << 20;
    constexpr CUdeviceptr kUntouched = 0x1234;
    CUdeviceptr block = kUntouched;
    Within::said();
    CUresult result = CUDA_SUCCESS;
    if (function == Function::cuMemAllocAsync || function == Function::cuMemAllocAsync_ptsz) {
        const Instead instead(function, take_more);
        real_allocate = instead.before();
        result = function == Function::cuMemAllocAsync ? cuMemAllocAsync(&block, kBytes, nullptr)
                                                       : cuMemAllocAsync_ptsz(&block, kBytes, nullptr);
    } else {
        const Instead instead(function, take_more_of_pool);
        real_allocate = instead.before();
        result = function == Function::cuMemAllocFromPoolAsync
                     ? cuMemAllocFromPoolAsync(&block, kBytes, pool, nullptr)
                     : cuMemAllocFromPoolAsync_ptsz(&block, kBytes, pool, nullptr);
    }
    CHECK(result == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(block == kUntouched);
    // The driver's surplus is charged, and no block of the refused allocation's.
    cuuint64_t used = 0;
    CHECK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) == CUDA_SUCCESS);
    CHECK(used == kFar);
    CHECK(Within::used(0) == before + kFar);
    const std::string now = std::to_string(Within::used(0) >> 20);
    CAPTURE(now);
    for (const std::string& line : Within::said()) {  // some are left out where there are many
        CAPTURE(line);
        CHECK(line.find(" tried to allocate 8.0 MiB; ") != std::string::npos);
        CHECK(line.find("; " + now + ".0 MiB of the 1024.0 MiB limit are in use (") != std::string::npos);
    }
    // All of it can be had again.
    CHECK(cuMemFreeAsync(taken_besides, nullptr) == CUDA_SUCCESS);
    CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
    CHECK(cuDeviceSetMemPool(0, preset) == CUDA_SUCCESS);
    CHECK(cuMemPoolDestroy(pool) == CUDA_SUCCESS);
    CHECK(Within::used(0) == before);
    CHECK(cuMemFree_v2(Within::allocate(512 << 20)) == CUDA_SUCCESS);
    CHECK(Within::used(0) == before);
}
