// SPDX-License-Identifier: Apache-2.0
// The figures of an allocator: current, peak, in all, and when a change of them is told.
#include <cstdint>

#include "tests/catch.h"
#include "tests/policy/allocator/made_up_memory.h"
#include "tests/policy/allocator/test_backing.h"

namespace cuslice {

TEST_CASE("statistics end with a context, whose memory was all given back, and begin anew with the next") {
    Allocator a;
    const uint64_t freed = a.allocate(kMiB);
    a.allocate(1000), a.allocate(2 * kMiB);
    a.free(freed);
    const Statistics done = a.allocator.close();
    for (const Tally* tally : {&done.allocated, &done.requested, &done.active, &done.reserved}) {
        CHECK(tally->current == 0);
        CHECK(tally->freed == tally->allocated);
    }
    CHECK(done.allocated.allocated == 3 * kMiB + 1024);
    CHECK(done.allocations == 3);
    CHECK(done.frees == 1);
    CHECK(done.segments == 0);
    CHECK(done.segments_given_back == done.segments_taken);
    a.memory.live.clear();
    a.memory.held = 0;
    a.allocator.open(a.memory.backing(), shared_map(), {});
    a.allocate(500);
    const Statistics s = a.allocator.statistics();
    CHECK(s.allocated.allocated == 512);
    CHECK(s.allocated.peak == 512);
    CHECK(s.allocations == 1);
    CHECK(s.frees == 0);
    CHECK(s.reserved.peak == s.reserved.current);
    CHECK(s.segments_taken == 1);
}

TEST_CASE("what has changed in the statistics is told when it is worth it, and when no lock is held") {
    Allocator a;
    a.memory.asked = &a.allocator;  // would wait for ever under a lock
    const auto told = [&](auto what) {
        const unsigned before = a.memory.changes;
        what();
        return a.memory.changes - before;
    };
    uint64_t first = 0, second = 0;
    CHECK(told([&] { first = a.allocate(60 * kMiB); }) == 1);  // a segment
    CHECK(a.memory.last.allocated.current == 60 * kMiB);
    CHECK(a.memory.last.reserved.current == a.memory.held);
    CHECK(told([&] { a.free(first); }) == 1);
    CHECK(a.memory.last.frees == 1);
    CHECK(told([&] { second = a.allocate(8 * kMiB); }) == 0);
    CHECK(told([&] { a.free(second); }) == 1);  // 16 MiB since
    CHECK(a.memory.last.allocations == 2);
    CHECK(told([&] { a.free(a.allocate(1000)); }) == 0);
    // Small ones too, all together: 16 MiB of them are taken out of the segments.
    CHECK(told([&] {
              for (int i = 0; i < 256; i++)
                  a.allocate(64 * kKiB);
          }) == 1);
    a.memory.limit = a.memory.held;
    CHECK(told([&] { CHECK_FALSE(a.allocate(200 * kMiB)); }) == 1);
    CHECK(a.memory.last.ooms == 1);
    CHECK(told([&] { TestAllocator::thread_ends(); }) == 1);
    a.memory.asked = nullptr;
}

TEST_CASE("where much is held, a 64th of it is worth telling") {
    Allocator a({TestAllocator::Reuse::strict, true}, 4 * kGiB);
    REQUIRE(a.allocator.top_up(&a.denied));
    a.free(a.allocate(2 * kGiB));
    const unsigned before = a.memory.changes;
    for (int i = 0; i < 3; i++)
        a.allocate(20 * kMiB);
    CHECK(a.memory.changes == before);
    a.allocate(20 * kMiB);
    CHECK(a.memory.changes == before + 1);
    CHECK(a.memory.last.allocations == 0);  // nobody asked
}

TEST_CASE("statistics: current, peak, allocated and freed") {
    Allocator a;
    const uint64_t one = a.allocate(70'000), two = a.allocate(100'000), three = a.allocate(1000);
    a.free(one);
    const Statistics s = a.allocator.statistics();
    CHECK(s.allocated.current == 100'352 + 1024);
    CHECK(s.allocated.peak == 70'144 + 100'352);  // the small one has not been told of when it was highest
    CHECK(s.allocated.allocated == 70'144 + 100'352 + 1024);
    CHECK(s.allocated.freed == 70'144);
    CHECK(s.requested.current == 101'000);
    CHECK(s.requested.peak == 170'000);
    CHECK(s.reserved.current == a.memory.held);
    CHECK(s.segments == a.memory.takes);
    CHECK(s.allocations == 3);
    CHECK(s.frees == 1);
    a.free(two);
    a.free(three);
    a.allocator.trim(~0ull);
    CHECK(a.allocator.statistics().reserved.freed == s.reserved.allocated);
}

}  // namespace cuslice
