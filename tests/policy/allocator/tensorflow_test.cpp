// SPDX-License-Identifier: Apache-2.0
// Promises of TensorFlow's allocator to its programs, kept here for every program. (Growing regions, splitting, idle
// regions and 127 of 128 blocks are in growth_test, segments_test and caching_allocator_test; zero bytes are refused
// before they come here.)
#include <algorithm>
#include <vector>

#include "tests/catch.h"
#include "tests/policy/allocator/made_up_memory.h"

namespace cuslice {

using Freed = TestAllocator::Freed;

TEST_CASE("four bytes occupy one unit") {
    Allocator a;
    REQUIRE(a.allocate(4));
    const Statistics told = a.allocator.statistics();
    CHECK(told.requested.current == 4);
    CHECK(told.allocated.current == SizeClass::kUnit);
}

TEST_CASE("regions grow from 2 MiB to the limit, and never past it") {
    Allocator a({}, 100 * kMiB);
    uint64_t held = 0, largest_step = 0;
    while (a.allocate(100'000)) {
        if (a.memory.held == held)
            continue;
        if (held == 0)
            CHECK(a.memory.held == 2 * kMiB);
        largest_step = std::max(largest_step, a.memory.held - held);
        held = a.memory.held;
    }
    CHECK(held == 100 * kMiB);
    CHECK(largest_step < 20 * kMiB);
    CHECK(a.denied.by == AllocationError::By::limit);
}

TEST_CASE("neighbours that are freed, in whatever order, are one block again: the first one's pointer comes back") {
    const bool forwards = GENERATE(true, false);
    Allocator a;
    const uint64_t whole = a.allocate(8 * kMiB);
    REQUIRE(a.free(whole) == Freed::done);
    std::vector<uint64_t> blocks;
    for (int i = 0; i < 8; i++)
        blocks.push_back(a.allocate(kMiB));
    REQUIRE(blocks.front() == whole);
    for (unsigned i = 0; i < 8; i++)
        REQUIRE(a.free(blocks[forwards ? i : 7 - i]) == Freed::done);
    CHECK(a.allocate(8 * kMiB) == whole);
    CHECK(a.memory.takes == 1);
}

TEST_CASE("a large free block serves several smaller requests, and no segment is taken for them") {
    Allocator a;
    const uint64_t large = a.allocate(20 * kMiB);
    REQUIRE(a.free(large) == Freed::done);
    const unsigned takes = a.memory.takes;
    for (int i = 0; i < 20; i++)
        CHECK(a.allocate(kMiB));
    CHECK(a.memory.takes == takes);
}

TEST_CASE("an out-of-memory does not poison later allocations") {
    const auto options = GENERATE(TestAllocator::Options{}, kDeferred);
    Allocator a(options, 64 * kMiB);
    const uint64_t kept = a.allocate(10 * kMiB);
    for (int i = 0; i < 10; i++) {
        CHECK(a.allocate(200 * kMiB) == 0);
        CHECK(a.denied.by == AllocationError::By::limit);
        const uint64_t large = a.allocate(40 * kMiB), small = a.allocate(100);
        REQUIRE(large);
        REQUIRE(small);
        CHECK(a.free(large) == Freed::done);
        CHECK(a.free(small) == Freed::done);
    }
    CHECK(a.allocator.statistics().ooms == 10);
    CHECK(a.find(kept + kMiB).address == kept);
}

TEST_CASE("a request that fails is granted once its neighbour has freed, within the same limit") {
    Allocator a({}, 32 * kMiB);
    const uint64_t first = a.allocate(20 * kMiB);
    REQUIRE(first);
    CHECK(a.allocate(20 * kMiB) == 0);
    CHECK(a.free(first) == Freed::done);
    CHECK(a.allocate(20 * kMiB));
    CHECK(a.memory.peak <= 32 * kMiB);
}

}  // namespace cuslice
