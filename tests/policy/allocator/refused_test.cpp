// What the driver refuses, or can't say: nothing is lost by it, and nobody asks again and again.
#include <vector>

#include "tests/catch.h"
#include "tests/policy/allocator/made_up_memory.h"

namespace cuslice {
namespace {

using Freed = CachingAllocator::Freed;

constexpr CachingAllocator::Options kStrict{};

}  // namespace

TEST_CASE("a segment that the driver doesn't take back is in the cache as before") {
    const bool huge = GENERATE(false, true);
    Allocator a;
    const std::uint64_t size = huge ? 100 * kMiB : 6 * kMiB, block = a.allocate(size), held = a.memory.held;
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
    for (std::uint64_t now = 1500; now < 2000; now += 100) CHECK(a.allocator.release_idle(now, 500, true) == 0);
    CHECK(a.memory.attempts == 1);
    a.memory.takes_nothing_back = false;
    CHECK(a.allocator.release_idle(3000, 500, true) == 100 * kMiB);
}

TEST_CASE("a worn out segment that can't be given back is given back later") {
    const bool capturing = GENERATE(false, true);
    Allocator a;
    const std::uint64_t exported = a.allocate(100 * kMiB), held = a.memory.held;
    REQUIRE(CachingAllocator::mark(shared_map(), exported));
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
    CHECK(a.denied.by == Denied::By::limit);
    CHECK(a.memory.returns == returns);
    a.memory.capturing = false;
    CHECK(a.allocate(260 * kMiB) != 0);
}

TEST_CASE("what the driver answers for another reason than memory is the answer, after one question") {
    Allocator a;
    REQUIRE(a.free(a.allocate(100 * kMiB)) == Freed::done);
    const unsigned before = a.memory.asked_for, returns = a.memory.returns;
    a.memory.capturing = true;
    a.memory.failure = 900;
    CHECK(a.allocate(130 * kMiB) == 0);
    CHECK(a.denied.by == Denied::By::failure);
    CHECK(a.denied.error == 900);
    CHECK(a.memory.asked_for == before + 1);
    CHECK(a.memory.returns == returns);
    CHECK(a.allocator.statistics().ooms == 0);
    a.memory.capturing = false;
    a.memory.failure = 0;
    CHECK(a.allocate(130 * kMiB) != 0);
}

}  // namespace cuslice
