// SPDX-License-Identifier: Apache-2.0
// Calls that the driver refuses, or can't answer: nothing is lost by them, and nobody asks again and again.
#include <vector>

#include "tests/catch.h"
#include "tests/policy/allocator/made_up_memory.h"

namespace cuslice {
namespace {

using Freed = TestAllocator::Freed;

constexpr TestAllocator::Options kStrict{};

}  // namespace

TEST_CASE("a segment that the driver doesn't take back is in the cache as before") {
    const bool huge = GENERATE(false, true);
    Allocator a;
    const uint64_t size = huge ? 100 * kMiB : 6 * kMiB, block = a.allocate(size), held = a.memory.held;
    REQUIRE(a.free(block) == Freed::done);
    const Statistics before = a.allocator.statistics();
    a.memory.takes_nothing_back = true;
    CHECK(a.allocator.trim(~0ull) == 0);
    CHECK(a.memory.attempts == 1);
    CHECK(a.memory.held == held);
    const Statistics after = a.allocator.statistics();
    CHECK(after.reserved.current == before.reserved.current);
    CHECK(after.reserved.freed == before.reserved.freed);
    CHECK(after.segments == before.segments);
    CHECK(after.segments_given_back == before.segments_given_back);
    CHECK(after.largest_free == before.largest_free);
    CHECK(a.allocator.unused() == held);
    CHECK(a.allocate(size) == block);
    CHECK(a.find(block).address == block);
    CHECK(a.free(block) == Freed::done);
    a.memory.takes_nothing_back = false;
    CHECK(a.allocator.trim(~0ull) == held);
    CHECK(a.memory.held == 0);
}

TEST_CASE("what has been idle for long and isn't taken back is tried again after that time, not at each look") {
    Allocator a;
    REQUIRE(a.free(a.allocate(100 * kMiB)) == Freed::done);
    a.memory.takes_nothing_back = true;
    a.allocator.release_idle(1000, 500, true);
    for (uint64_t now = 1500; now < 2000; now += 100)
        CHECK(a.allocator.release_idle(now, 500, true) == 0);
    CHECK(a.memory.attempts == 1);
    a.memory.takes_nothing_back = false;
    CHECK(a.allocator.release_idle(3000, 500, true) == 100 * kMiB);
}

TEST_CASE("a worn out segment that can't be given back is given back later") {
    const bool capturing = GENERATE(false, true);
    Allocator a;
    const uint64_t exported = a.allocate(100 * kMiB), held = a.memory.held;
    REQUIRE(TestAllocator::mark(shared_map(), exported));
    a.memory.keep_marked = true;
    (capturing ? a.memory.capturing : a.memory.takes_nothing_back) = true;
    CHECK(a.free(exported) == Freed::done);
    CHECK(a.memory.held == held);
    CHECK(a.allocator.unused() == 0);
    CHECK(a.allocate(100 * kMiB) != exported);
    a.memory.capturing = a.memory.takes_nothing_back = false;
    CHECK(a.allocator.trim(1) == 100 * kMiB);
    CHECK(a.memory.live.count(exported) == 0);
}

TEST_CASE("nothing goes back while a stream is captured, however it is asked for") {
    Allocator a(kStrict, 300 * kMiB);
    REQUIRE(a.free(a.allocate(100 * kMiB)) == Freed::done);
    REQUIRE(a.free(a.allocate(150 * kMiB)) == Freed::done);
    a.allocator.release_idle(1000, 500, true);
    const unsigned returns = a.memory.returns;
    a.memory.capturing = true;
    CHECK(a.allocator.trim(~0ull) == 0);
    CHECK(a.allocator.release_idle(5000, 500, true) == 0);
    a.allocator.help_out();
    CHECK(a.allocate(260 * kMiB) == 0);
    CHECK(a.denied.by == AllocationError::By::limit);
    CHECK(a.memory.returns == returns);
    a.memory.capturing = false;
    CHECK(a.allocate(260 * kMiB) != 0);
}

TEST_CASE("what the driver answers for another reason than memory is the answer, after one question") {
    Allocator a;
    REQUIRE(a.free(a.allocate(100 * kMiB)) == Freed::done);
    const unsigned before = a.memory.asked_for, returns = a.memory.returns;
    a.memory.capturing = true;
    a.memory.failure = kStreamCaptureUnsupported;
    CHECK(a.allocate(130 * kMiB) == 0);
    CHECK(a.denied.by == AllocationError::By::failure);
    CHECK(a.denied.error == kStreamCaptureUnsupported);
    CHECK(a.memory.asked_for == before + 1);
    CHECK(a.memory.returns == returns);
    CHECK(a.allocator.statistics().ooms == 0);
    a.memory.capturing = false;
    a.memory.failure = 0;
    CHECK(a.allocate(130 * kMiB) != 0);
}

TEST_CASE("deferred, without fences: what is deferred is bounded, and one wait is enough for all of it") {
    const uint64_t live = GENERATE(0, 1000) * kMiB;
    Allocator a(kDeferred);
    a.memory.no_fences = true;
    if (live)
        REQUIRE(a.allocate(live) != 0);
    const uint64_t most = std::max(64 * kMiB, live / 4), size = 8 * kMiB, rounds = 10 * most / size;
    for (uint64_t i = 0; i < rounds; i++) {
        REQUIRE(a.free(a.allocate(size)) == Freed::done);
        const Statistics now = a.allocator.statistics();
        REQUIRE(now.active.current - now.allocated.current <= most + size);
    }
    CHECK(a.memory.quiesces >= 8);
    CHECK(a.memory.quiesces <= 10);
}

TEST_CASE("deferred, without fences: blocks that were freed after a wait began aren't reused for it") {
    Allocator a(kDeferred);
    a.memory.no_fences = true;
    std::vector<uint64_t> blocks;
    for (int i = 0; i < 20; i++)
        blocks.push_back(a.allocate(8 * kMiB));
    for (const uint64_t block : blocks)
        REQUIRE(a.free(block) == Freed::done);
    const unsigned waits = a.memory.quiesces;
    CHECK(waits >= 1);
    a.memory.capturing = true;  // from here on nobody can say anything of the GPU
    const uint64_t late = a.allocate(8 * kMiB);
    REQUIRE(a.free(late) == Freed::done);
    for (int i = 0; i < 40; i++)
        CHECK(a.allocate(8 * kMiB) != late);
    CHECK(a.memory.quiesces == waits);
}

TEST_CASE("strict: what was deferred during a capture costs one wait when it is over") {
    Allocator a;
    std::vector<uint64_t> blocks;
    for (int i = 0; i < 2000; i++)
        blocks.push_back(a.allocate(100'000));
    a.memory.capturing = true;
    for (const uint64_t block : blocks)
        REQUIRE(a.free(block) == Freed::done);
    const unsigned waits = a.memory.quiesces;
    a.memory.capturing = false;
    a.allocator.trim(~0ull);
    CHECK(a.memory.quiesces == waits + 1);
    CHECK(a.memory.held == 0);
}

}  // namespace cuslice
