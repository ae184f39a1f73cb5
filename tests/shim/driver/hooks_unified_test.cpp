// SPDX-License-Identifier: Apache-2.0
// Attributes by which memory is about to be pinned for another device: it is nobody's again afterwards.
#include "tests/catch.h"
#include "tests/shim/within.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

// True if a block is handed out again after `say` was called for it and it was freed.
template <typename Say>
bool comes_back(Say say) {
    const CUdeviceptr block = Within::allocate(3 << 20);
    CHECK(say(block) == CUDA_SUCCESS);
    REQUIRE(cuMemFree_v2(block) == CUDA_SUCCESS);
    const CUdeviceptr next = Within::allocate(3 << 20);
    REQUIRE(cuMemFree_v2(next) == CUDA_SUCCESS);
    return next == block;
}

}  // namespace

TEST_CASE("a block is not handed out again once copies of it were made synchronous, and else it is") {
    const Within within(kCached);
    if (!within)
        return;
    Within::use(0);
    unsigned on = 1, off = 0;
    CHECK(comes_back([](CUdeviceptr) { return CUDA_SUCCESS; }));
    CHECK(
        comes_back([&](CUdeviceptr at) { return cuPointerSetAttribute(&off, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, at); }));
    // Another attribute, which can't be set, and no value: the driver's to refuse.
    CHECK(comes_back([&](CUdeviceptr at) {
        CHECK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at) != CUDA_SUCCESS);
        CHECK(cuPointerSetAttribute(nullptr, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, at) == CUDA_ERROR_INVALID_VALUE);
        return CUDA_SUCCESS;
    }));
    CHECK_FALSE(
        comes_back([&](CUdeviceptr at) { return cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, at); }));
}
