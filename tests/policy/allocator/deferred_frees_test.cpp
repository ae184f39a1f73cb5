// SPDX-License-Identifier: Apache-2.0
// The large blocks that a thread has freed in `deferred`, and has again once the GPU has come past them.
#include <atomic>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/policy/allocator/made_up_memory.h"
#include "tests/sleeping.h"

namespace cuslice {
namespace {

using Freed = TestAllocator::Freed;
using tests::await_sleep, tests::this_thread;

// Pairs of this size, until the segment has no room for another block: 2 MiB have room for two.
struct Settled : Allocator {
    Settled() : Allocator(kDeferred) {
        for (int i = 0; i < 10; i++)
            pair();
        memory.fences = memory.takes = 0;
    }
    uint64_t pair() {
        const uint64_t block = allocate(kMiB);
        return free(block) == Freed::done ? block : 0;
    }
};

}  // namespace

TEST_CASE("a thread that frees and allocates the same size asks the GPU once for what its segment has room for") {
    Settled a;
    for (int i = 0; i < 100; i++)
        REQUIRE(a.pair());
    CHECK(a.memory.fences == 50);
    CHECK(a.memory.takes == 0);
}

TEST_CASE("a thread has its own freed blocks again without the allocator's lock") {
    Allocator a(kDeferred);
    std::atomic<int> step{0}, pairs{0};
    pid_t id = 0;
    std::thread thread([&] {
        id = this_thread();
        AllocationError denied;
        int error = 0;
        const auto pair = [&] {
            TestAllocator::free(shared_map(), a.allocator.allocate(kMiB, &denied), &error);
            pairs++;
        };
        while (pairs < 10)
            pair();
        step = 1;
        while (step < 2)
            std::this_thread::yield();
        while (pairs < 20)
            pair();
        step = 3;
        TestAllocator::thread_ends();
    });
    while (step < 1)
        std::this_thread::yield();
    std::function<void()> once = [&] {
        step = 2;
        await_sleep(id);  // for the lock, at the latest when it ends
        CHECK(pairs == 20);
    };
    // A visitor has it.
    a.allocator.inspect(
        [](const Segment&, void* of) {
            if (auto& first = *static_cast<std::function<void()>*>(of))
                std::exchange(first, nullptr)();
        },
        [](const Block&, void*) {}, &once);
    thread.join();
}

TEST_CASE("what a thread has deferred is not its own again before the GPU has come past, however often that was so") {
    Settled a;
    a.memory.instant = false;
    std::vector<uint64_t> deferred;
    for (int i = 0; i < 20; i++) {
        const uint64_t block = a.allocate(kMiB);
        for (const uint64_t other : deferred)
            REQUIRE(block != other);
        REQUIRE(a.free(block) == Freed::done);
        // The first two blocks were kept before the GPU fell behind.
        if (i >= 2)
            deferred.push_back(block);
    }
    CHECK(a.memory.quiesces == 0);
    a.memory.pending.clear();  // the GPU is done
    a.memory.instant = true;
    const uint64_t held = a.memory.held;
    for (int i = 0; i < 20; i++)
        REQUIRE(a.allocate(kMiB));
    CHECK(a.memory.held == held);
}

TEST_CASE("while the GPU is behind, a thread asks it for each batch and not for each block") {
    Settled a;
    const uint64_t large = a.allocate(64 * kMiB);
    for (int i = 0; i < 10; i++)
        REQUIRE(a.pair());                  // there is nothing free but its own
    REQUIRE(a.free(large) == Freed::done);  // now there is
    a.memory.instant = false;
    a.memory.fences = 0;
    for (int i = 0; i < 40; i++)
        REQUIRE(a.pair());
    CHECK(a.memory.fences <= 11);  // 4 MiB wait together
}

TEST_CASE("blocks too large for a thread wait together until they are worth asking the GPU") {
    Allocator a(kDeferred);
    a.memory.instant = false;
    REQUIRE(a.allocate(16 * kGiB));
    std::vector<uint64_t> blocks;
    for (int i = 0; i < 8; i++)
        blocks.push_back(a.allocate(5 * kMiB));
    a.memory.fences = 0;
    for (unsigned i = 0; i < blocks.size(); i++) {
        REQUIRE(a.free(blocks[i]) == Freed::done);
        CHECK(a.memory.fences == (i + 1) / 4);  // a 1024th of 16 GiB
    }
}

}  // namespace cuslice
