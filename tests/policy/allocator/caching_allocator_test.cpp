// SPDX-License-Identifier: Apache-2.0
#include "tests/policy/allocator/test_backing.h"

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/policy/allocator/made_up_memory.h"

namespace cuslice {

using Freed = TestAllocator::Freed;

TEST_CASE("the first segment is of 2 MiB, and what is freed is used again") {
    Allocator a;
    const uint64_t small = a.allocate(1000);
    CHECK(a.memory.held == 2 * kMiB);
    CHECK(small % 512 == 0);
    CHECK(a.free(small) == Freed::done);
    CHECK(a.allocate(1000) == small);
    const uint64_t large = a.allocate(3 * kMiB);
    CHECK(a.free(large) == Freed::done);
    CHECK(a.allocate(3 * kMiB) == large);
    CHECK(a.memory.takes == 2);
}

TEST_CASE("large blocks begin where other devices and the host can map them, whatever was allocated before") {
    const auto options = GENERATE(TestAllocator::Options{}, kDeferred);
    Allocator a(options);
    std::mt19937 random(3);
    std::vector<uint64_t> live;
    for (int i = 0; i < 3000; i++) {
        const uint64_t most = 1ull << (17 + random() % 11), bytes = SizeClass::kMax + 1 + random() % most;
        const uint64_t boundary = bytes >= 64 * kMiB ? 2 * kMiB : bytes >= 2 * kMiB ? 64 << 10 : 4096;
        live.push_back(a.allocate(bytes));
        CAPTURE(bytes);
        REQUIRE(live.back());
        REQUIRE(live.back() % boundary == 0);
        while (live.size() > 30) {
            std::swap(live[random() % live.size()], live.back());
            REQUIRE(a.free(live.back()) == Freed::done);
            live.pop_back();
        }
    }
}

TEST_CASE("a repeating program makes no driver allocation after its first round") {
    const auto options = GENERATE(TestAllocator::Options{}, kDeferred);
    Allocator a(options);
    unsigned takes = 0;
    for (int round = 0; round < 20; round++) {
        std::vector<uint64_t> live;
        for (uint64_t i = 1; i < 400; i++)
            live.push_back(a.allocate(i * i * 300 + 1));
        for (const uint64_t address : live)
            REQUIRE(a.free(address) == Freed::done);
        if (round == 1)
            takes = a.memory.takes;
    }
    CHECK(a.memory.takes == takes);
    CHECK(a.memory.returns == 0);
}

TEST_CASE("wrong frees are told apart, and harm nothing") {
    Allocator a;
    const uint64_t small = a.allocate(5000), large = a.allocate(5 * kMiB);
    CHECK(a.free(0x1234) == Freed::not_ours);
    CHECK(a.free(small + 512) == Freed::invalid);
    CHECK(a.free(small + 1) == Freed::invalid);
    CHECK(a.free(large + 512) == Freed::invalid);
    CHECK(a.free(large + 2 * kMiB) == Freed::invalid);
    CHECK(a.memory.quiesces == 0);  // the GPU is not waited for
    CHECK(a.free(small) == Freed::done);
    CHECK(a.free(small) == Freed::invalid);
    CHECK(a.free(large) == Freed::done);
    CHECK(a.free(large) == Freed::invalid);
    CHECK(a.allocator.statistics().allocated.current == 0);
    CHECK(a.allocator.statistics().frees == 2);
}

TEST_CASE("over the limit: the reason is the budget's, nothing is lost, and freed memory can be had again") {
    Allocator a({}, 100 * kMiB);
    const uint64_t most = a.allocate(90 * kMiB);
    REQUIRE(most);
    CHECK(a.allocate(20 * kMiB) == 0);
    CHECK(a.denied.by == AllocationError::By::limit);
    CHECK(a.denied.over_limit.ceiling == 100 * kMiB);
    CHECK(a.allocator.statistics().ooms == 1);
    CHECK(a.free(most) == Freed::done);
    // The idle segment goes back to make room for a larger one.
    const uint64_t all = a.allocate(100 * kMiB);
    REQUIRE(all);
    CHECK(a.memory.peak <= 100 * kMiB);
    CHECK(a.allocator.statistics().retries == 1);
}

TEST_CASE("freeing 127 of 128 blocks lets a large one in again") {
    Allocator a({}, 128 * kMiB);
    std::vector<uint64_t> blocks;
    for (int i = 0; i < 128; i++)
        blocks.push_back(a.allocate(kMiB));
    for (const uint64_t block : blocks)
        REQUIRE(block);
    CHECK(a.allocate(kMiB) == 0);
    for (int i = 1; i < 128; i++)
        REQUIRE(a.free(blocks[i]) == Freed::done);
    CHECK(a.allocate(100 * kMiB));
}

TEST_CASE("where the driver has less than the limit, a tenth less is asked until it fits") {
    Allocator a;
    for (int i = 0; i < 200; i++)
        REQUIRE(a.allocate(8 * kMiB));
    a.memory.physical = a.memory.held + 12 * kMiB;
    const unsigned takes = a.memory.takes;
    while (a.memory.takes == takes)
        REQUIRE(a.allocate(8 * kMiB));
    CHECK(a.memory.held <= a.memory.physical);
    CHECK(a.memory.held > a.memory.physical - 12 * kMiB);
    AllocationError denied;
    while (a.allocator.allocate(8 * kMiB, &denied)) {
    }
    CHECK(denied.by == AllocationError::By::driver);
    CHECK(denied.error == kOutOfMemory);
}

TEST_CASE("preallocation takes all there is room for, and keeps it") {
    Allocator a({TestAllocator::Reuse::strict, true}, 1000 * kMiB);
    AllocationError denied;
    CHECK(a.allocator.top_up(&denied));
    CHECK(a.memory.held == 1000 * kMiB);
    CHECK(a.allocator.unused() == 1000 * kMiB);
    const uint64_t block = a.allocate(10 * kMiB);
    // It lies in the smallest piece that is large enough.
    CHECK(a.find(block).segment->bytes < 200 * kMiB);
    // A request for more than any piece: idle pieces become one that is large enough, and the rest stays taken.
    CHECK(a.allocate(700 * kMiB));
    CHECK(a.memory.held == 1000 * kMiB);
    // Somebody else in the process needs some.
    CHECK(a.allocator.trim(60 * kMiB) >= 60 * kMiB);
    CHECK(a.memory.held <= 940 * kMiB);
}

TEST_CASE("strict: a block whose GPU can't be waited for stays the program's") {
    Allocator a;
    const uint64_t small = a.allocate(1000), large = a.allocate(kMiB);
    a.memory.sync_error = kIllegalAddress;
    CHECK(a.free(small) == Freed::failed);
    CHECK(a.error == kIllegalAddress);
    CHECK(a.free(large) == Freed::failed);
    CHECK(a.allocator.statistics().frees == 0);
    a.memory.sync_error = 0;
    CHECK(a.free(small) == Freed::done);
    CHECK(a.free(large) == Freed::done);
}

TEST_CASE("the GPU's own error is answered before it is seen that a small block is free already") {
    Allocator a;
    const uint64_t block = a.allocate(1000);
    CHECK(a.free(block) == Freed::done);
    a.memory.sync_error = kIllegalAddress;
    CHECK(a.free(block) == Freed::failed);
    CHECK(a.error == kIllegalAddress);
    a.memory.sync_error = 0;
    CHECK(a.free(block) == Freed::invalid);
    CHECK(a.allocator.statistics().frees == 1);
}

TEST_CASE("while a stream is captured nothing is waited for, and freed blocks are not handed out") {
    const auto options = GENERATE(TestAllocator::Options{}, kDeferred);
    Allocator a(options);
    const uint64_t small = a.allocate(1000), large = a.allocate(kMiB);
    a.memory.capturing = true;
    const unsigned asked = a.memory.quiesces + a.memory.fences;
    CHECK(a.free(small) == Freed::done);
    CHECK(a.free(large) == Freed::done);
    for (int i = 0; i < 500; i++) {
        CHECK(a.allocate(1000) != small);
        CHECK(a.allocate(kMiB) != large);
    }
    CHECK(a.memory.quiesces + a.memory.fences == asked);
    a.memory.capturing = false;
    CHECK(a.allocator.statistics().active.current > a.allocator.statistics().allocated.current);
    a.allocator.trim(0);
    CHECK(a.allocator.statistics().active.current == a.allocator.statistics().allocated.current);
    CHECK(a.allocate(kMiB) == large);
}

TEST_CASE("deferred: a block is handed out again only after the GPU has come past its free") {
    Allocator a(kDeferred);
    a.memory.instant = false;
    std::vector<uint64_t> freed;
    for (int i = 0; i < 100; i++)
        freed.push_back(a.allocate(kMiB));
    for (const uint64_t address : freed)
        REQUIRE(a.free(address) == Freed::done);
    CHECK(a.memory.fences > 0);
    CHECK(a.memory.fences <= 100);
    for (int i = 0; i < 100; i++) {
        const uint64_t address = a.allocate(kMiB);
        for (const uint64_t old : freed)
            REQUIRE(address != old);
    }
    a.memory.pending.clear();  // the GPU is done
    const uint64_t held = a.memory.held;
    for (int i = 0; i < 90; i++)
        REQUIRE(a.allocate(kMiB));
    CHECK(a.memory.held == held);
    CHECK(a.memory.quiesces == 0);
}

TEST_CASE("deferred: before memory is refused, the GPU is waited for") {
    Allocator a(kDeferred, 64 * kMiB);
    a.memory.instant = false;
    for (int i = 0; i < 100; i++) {
        const uint64_t address = a.allocate(40 * kMiB);
        REQUIRE(address);
        REQUIRE(a.free(address) == Freed::done);
    }
    CHECK(a.allocator.statistics().ooms == 0);
}

TEST_CASE("interior addresses lead to their block") {
    Allocator a;
    const uint64_t small = a.allocate(5000), large = a.allocate(100 * kMiB);
    CHECK(a.find(small + 4999).address == small);
    CHECK(a.find(small + 4999).requested == 5000);
    CHECK(a.find(small + 5000).address == 0);
    CHECK(a.find(large + 100 * kMiB - 1).address == large);
    CHECK(a.find(large).requested == 100 * kMiB);
    CHECK(a.find(77).address == 0);
    a.free(large);
    CHECK(a.find(large + 5).address == 0);
}

TEST_CASE("a range is within one block, which reaches as far as its size was rounded up, or in no segment") {
    const TestAllocator::Options options = GENERATE(TestAllocator::Options{}, kDeferred);
    Allocator a(options);
    const uint64_t size = GENERATE(1ull, 511ull, 1000ull, 5000ull, 64 * kKiB, 64 * kKiB + 1, 200 * kKiB - 7, 2 * kMiB,
                                   5 * kMiB + 1234, 300 * kMiB);
    CAPTURE(size);
    std::vector<uint64_t> blocks;
    for (int i = 0; i < 5; i++)
        blocks.push_back(a.allocate(size));
    const uint64_t extent = size > SizeClass::kMax ? (size + 511) / 512 * 512 : SizeClass::bytes(SizeClass::of(size));
    for (const uint64_t block : blocks) {
        CHECK(a.holds(block, extent));
        CHECK_FALSE(a.holds(block, extent + 1));
        CHECK_FALSE(a.holds(block, ~0ull));
        // At every boundary at which something else could be known of it, and beside it.
        for (uint64_t step = 1; step < extent; step *= 2) {
            for (const uint64_t at : {block + step, (block + step) / step * step, block + extent - step}) {
                if (at < block || at >= block + extent)
                    continue;
                CAPTURE(block, at);
                CHECK(a.holds(at, block + extent - at));
                CHECK_FALSE(a.holds(at, block + extent - at + 1));
            }
        }
    }
    REQUIRE(a.free(blocks[2]) == Freed::done);
    for (const uint64_t at : {blocks[2], blocks[2] + extent / 2, blocks[2] + extent - 1})
        CHECK_FALSE(a.holds(at, 1));
    CHECK(a.holds(blocks[1] + extent - 1, 1));
    CHECK(a.holds(blocks[3], extent));
    CHECK(a.holds(77, ~0ull));
    a.allocator.close();
    CHECK(a.holds(blocks[1], extent + 1));  // the driver's to answer
}

TEST_CASE("what was noted of a block is forgotten with it, and what others may use is not handed out again") {
    Allocator a;
    const uint64_t small = a.allocate(5000), large = a.allocate(3 * kMiB), other = a.allocate(5000);
    CHECK(TestAllocator::mark(shared_map(), small));
    CHECK(TestAllocator::mark(shared_map(), large));
    CHECK_FALSE(TestAllocator::mark(shared_map(), small + 512));
    a.free(other);
    CHECK(a.memory.forgotten.empty());
    a.memory.keep_marked = true;
    a.free(small);
    a.free(large);
    CHECK(a.memory.forgotten == std::set<uint64_t>{small, large});
    CHECK(a.free(small) == Freed::invalid);
    CHECK(a.free(large) == Freed::not_ours);  // its segment had nothing else in it, and is the driver's again
    for (int i = 0; i < 200; i++) {
        REQUIRE(a.allocate(5000) != small);
        REQUIRE(a.allocate(3 * kMiB) != large);
    }
}

TEST_CASE("a segment with nothing left but blocks that others may use goes back to the driver") {
    Allocator a;
    const uint64_t exported = a.allocate(100 * kMiB), beside = a.allocate(kMiB);
    REQUIRE(TestAllocator::mark(shared_map(), exported));
    a.memory.keep_marked = true;
    const uint64_t held = a.memory.held;
    a.free(exported);
    CHECK(a.memory.held == held - 100 * kMiB);
    CHECK(a.allocator.unused() == a.memory.held - kMiB);
    CHECK(a.free(beside) == Freed::done);
    CHECK(a.allocator.unused() == a.memory.held);
}

TEST_CASE("idle segments go back after their time") {
    Allocator a;
    std::vector<uint64_t> blocks;
    for (int i = 0; i < 50; i++)
        blocks.push_back(a.allocate(4 * kMiB)), blocks.push_back(a.allocate(3000));
    for (const uint64_t block : blocks)
        a.free(block);
    CHECK(a.allocator.release_idle(1000, 500, false) == 0);  // the first look notes what is idle
    const uint64_t again = a.allocate(4 * kMiB);
    a.free(again);
    CHECK(a.allocator.release_idle(1499, 500, false) == 0);
    CHECK(a.allocator.release_idle(1500, 500, true) > 0);
    CHECK(a.memory.held > 0);  // what was used meanwhile, and what the thread had kept
    a.allocator.release_idle(2000, 500, true);
    CHECK(a.memory.held == 0);
    CHECK(a.allocator.statistics().segments == 0);
}

TEST_CASE("what is idle goes back when somebody else needs it, at the next slow step") {
    Allocator a;
    const uint64_t kept = a.allocate(1000), idle = a.allocate(100 * kMiB);
    a.free(a.allocate(1000));
    a.free(idle);
    a.memory.wanted = true;
    CHECK(a.allocate(1000));  // from the magazine: nothing is looked at
    CHECK(a.memory.held > 100 * kMiB);
    CHECK(a.allocate(kMiB));
    CHECK(a.memory.held < 20 * kMiB);
    CHECK(a.free(kept) == Freed::done);
}

TEST_CASE("a thread keeps the large blocks that it has freed last, for the same size, until another is asked for") {
    Allocator a(GENERATE(TestAllocator::Options{}, kDeferred));
    REQUIRE(a.free(a.allocate(1)) == Freed::done);  // this thread's store is there
    a.allocator.trim(~0ull);
    a.memory.takes = 0;
    const uint64_t block = a.allocate(2 * kMiB), other = a.allocate(kMiB);
    REQUIRE(a.free(block) == TestAllocator::Freed::done);
    CHECK(a.free(block) == TestAllocator::Freed::invalid);
    CHECK(a.free(block + 512) == TestAllocator::Freed::invalid);
    CHECK(a.find(block).owner == nullptr);
    CHECK(a.allocator.statistics().allocated.current == kMiB);
    CHECK(a.allocator.statistics().requested.current == kMiB);
    CHECK(a.allocate(2 * kMiB - 100) == block);
    CHECK(a.find(block + 2 * kMiB - 101).requested == 2 * kMiB - 100);
    CHECK_FALSE(a.find(block + 2 * kMiB - 100).owner);
    REQUIRE(a.free(block) == TestAllocator::Freed::done);
    REQUIRE(a.free(other) == TestAllocator::Freed::done);
    // Both are one again, and no segment is taken.
    const uint64_t whole = a.allocate(4 * kMiB);
    CHECK(whole);
    CHECK(a.memory.takes == 1);
    REQUIRE(a.free(whole) == TestAllocator::Freed::done);
    CHECK(a.allocator.trim(1) == 4 * kMiB);
    CHECK(a.memory.held == 0);
}

TEST_CASE("what a thread keeps is others' when they need it, or when it ends") {
    Allocator a({}, 2 * kMiB);
    const bool ends = GENERATE(true, false);
    uint64_t block = 0;
    std::atomic<int> step{0};
    std::thread thread([&] {
        block = a.allocator.allocate(kMiB, &a.denied);
        int error = 0;
        TestAllocator::free(shared_map(), block, &error);
        if (ends)
            TestAllocator::thread_ends();
        step = 1;
        while (step < 2)
            std::this_thread::yield();
        if (!ends)
            TestAllocator::thread_ends();
    });
    while (step < 1)
        std::this_thread::yield();
    CHECK(a.allocate(2 * kMiB) == block);
    step = 2;
    thread.join();
}

TEST_CASE("a context's end takes everything with it, and the allocator can be used for another") {
    Allocator a(kDeferred);
    const uint64_t small = a.allocate(1000), large = a.allocate(kMiB), freed = a.allocate(kMiB);
    a.free(freed);
    a.allocator.close();
    CHECK(a.free(small) == Freed::not_ours);
    CHECK(a.free(large) == Freed::not_ours);
    CHECK(a.allocator.reserved() == 0);
    a.memory.live.clear();
    a.memory.held = 0;
    a.allocator.open(a.memory.backing(), shared_map(), kDeferred);
    const uint64_t again = a.allocate(1000);
    CHECK(again);
    CHECK(again != small);
    CHECK(a.allocator.statistics().allocated.current == 1024);
    CHECK(a.free(again) == Freed::done);
}

TEST_CASE("a driver that aligns to less than 2 MiB costs the ends of its segments and nothing else") {
    Allocator a;
    a.memory.unaligned = 4096;
    const uint64_t large = a.allocate(kMiB);
    REQUIRE(large);
    CHECK(a.free(large) == Freed::done);
    CHECK(a.allocator.trim(~0ull) > 0);
    CHECK(a.memory.held == 0);
    CHECK(a.allocate(~0ull - 20'000) == 0);
    CHECK(a.memory.held == 0);
}

TEST_CASE("a context that ends while its allocator grows leaves nothing behind, and waits for nobody") {
    struct Ending : MadeUpMemory {
        TestAllocator* allocator = nullptr;
    } memory;
    TestAllocator& allocator = *new TestAllocator;
    memory.allocator = &allocator;
    BackingTable backing = memory.backing();
    static uint64_t (*const take)(void*, uint64_t, AllocationError*) = backing.take;
    backing.take = [](void* self, uint64_t bytes, AllocationError* denied) {
        const uint64_t address = take(self, bytes, denied);
        static_cast<Ending*>(static_cast<MadeUpMemory*>(self))->allocator->close();
        return address;
    };
    allocator.open(backing, shared_map(), {});
    AllocationError denied;
    CHECK(allocator.allocate(kMiB, &denied) == 0);
    CHECK(memory.held == 0);
    CHECK(allocator.reserved() == 0);
    TestAllocator::thread_ends();
    delete &allocator;
}

}  // namespace cuslice
