// SPDX-License-Identifier: Apache-2.0
// Ranges that a device may go on using after their free.
#include "shim/driver/kept.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/shim/within.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

// True if a block is handed out again after its free although `range` was kept. Each call takes another size: once a
// block was kept, the driver itself serves blocks of about its size.
template <typename Range>
bool comes_back(Range range) {
    static size_t bytes = 3 << 20;
    bytes += 2 << 20;
    const CUdeviceptr block = Within::allocate(bytes);
    const auto [address, length] = range(block, bytes);
    CHECK(keep_from_reuse(address, length));
    REQUIRE(cuMemFree_v2(block) == CUDA_SUCCESS);
    const CUdeviceptr next = Within::allocate(bytes);
    REQUIRE(cuMemFree_v2(next) == CUDA_SUCCESS);
    return next == block;
}

using Range = std::pair<CUdeviceptr, uint64_t>;

}  // namespace

TEST_CASE("a block of which any part is kept is nobody's again, and one beside the range is") {
    const Within within(kCached);
    if (!within)
        return;
    Within::use(0);
    CHECK(comes_back([](CUdeviceptr, size_t) { return Range{0x1000, 1}; }));
    CHECK(comes_back([](CUdeviceptr, size_t) { return Range{0x1000, ~0ull}; }));
    CHECK(comes_back([](CUdeviceptr block, size_t) { return Range{block, 0}; }));
    CHECK(comes_back([](CUdeviceptr block, size_t bytes) { return Range{block + bytes, 1}; }));
    CHECK_FALSE(comes_back([](CUdeviceptr block, size_t bytes) { return Range{block + bytes - 1, 1}; }));
}

TEST_CASE("all blocks of a range are kept, small ones and large ones") {
    const Within within(kCached);
    if (!within)
        return;
    Within::use(0);
    const size_t bytes = GENERATE(size_t{512}, size_t{100} << 10, size_t{3} << 20);
    CAPTURE(bytes);
    std::vector<CUdeviceptr> blocks;
    for (int i = 0; i < 8; i++)
        blocks.push_back(Within::allocate(bytes));
    std::sort(blocks.begin(), blocks.end());
    CHECK(keep_from_reuse(blocks.front(), blocks.back() - blocks.front() + 1));
    for (const CUdeviceptr block : blocks)
        REQUIRE(cuMemFree_v2(block) == CUDA_SUCCESS);
    std::vector<CUdeviceptr> next;
    for (int i = 0; i < 64; i++)
        next.push_back(Within::allocate(bytes));
    for (const CUdeviceptr block : blocks)
        CHECK(std::find(next.begin(), next.end(), block) == next.end());
    for (const CUdeviceptr block : next)
        REQUIRE(cuMemFree_v2(block) == CUDA_SUCCESS);
}
