// SPDX-License-Identifier: Apache-2.0
// The old form of cuMemGetInfo, with 32 bits for each number, and address ranges of allocations.
#include "tests/catch.h"
#include "tests/shim/within.h"
#include "virtual_gpu/driver/table.h"

using namespace cuslice;
using namespace cuslice::tests;

TEST_CASE("the old form tells the slice, and what the driver refuses tells nothing") {
    const Within within;
    if (!within)
        return;
    Within::use(0);
    unsigned free = 77, total = 78;
    size_t all_free = 0, all = 0;
    REQUIRE(cuMemGetInfo_v2(&all_free, &all) == CUDA_SUCCESS);
    CHECK(all == size_t{1} << 30);
    CHECK(cuMemGetInfo(&free, &total) == CUDA_SUCCESS);
    CHECK(free == all_free);
    CHECK(total == all);
    CHECK(cuMemGetInfo_v2(nullptr, &all) == CUDA_SUCCESS);
    CHECK(cuMemGetInfo(&free, nullptr) == CUDA_SUCCESS);
    free = 77, total = 78;
    REQUIRE(cuCtxSetCurrent(nullptr) == CUDA_SUCCESS);
    CHECK(cuMemGetInfo(&free, &total) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(free == 77);
    CHECK(total == 78);
}

TEST_CASE("a range is told of an allocation, and of nobody's address nothing") {
    const Within within;
    if (!within)
        return;
    Within::use(0);
    const CUdeviceptr block = Within::allocate(1 << 20);
    CUdeviceptr base = 77;
    size_t size = 78;
    CHECK(cuMemGetAddressRange_v2(&base, &size, 0x1000) != CUDA_SUCCESS);
    CHECK(base == 77);
    CHECK(size == 78);
    CHECK(cuMemGetAddressRange_v2(&base, &size, block + 5) == CUDA_SUCCESS);
    CHECK(base == block);
    CHECK(size == 1 << 20);
    REQUIRE(cuMemFree_v2(block) == CUDA_SUCCESS);
}
