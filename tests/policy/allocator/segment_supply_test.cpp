// SPDX-License-Identifier: Apache-2.0
// Threads that need segments at the same time, and a driver that takes its time.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/policy/allocator/made_up_memory.h"
#include "tests/sleeping.h"
#include "tests/soon.h"

namespace cuslice {
namespace {

using tests::await_sleep, tests::this_thread;

// A driver in which threads wait for each other.
struct Meeting : MadeUpMemory {
    std::mutex meet;
    std::condition_variable complete;
    unsigned inside = 0, alone = 0;
    unsigned size = 2;
    bool given_up = false;
    TestAllocator& allocator = *new TestAllocator;

    Meeting() {
        BackingTable slow = backing();
        static uint64_t (*const at_once)(void*, uint64_t, AllocationError*) = slow.take;
        slow.take = [](void* self, uint64_t bytes, AllocationError* denied) {
            static_cast<Meeting*>(static_cast<MadeUpMemory*>(self))->wait();
            return at_once(self, bytes, denied);
        };
        allocator.open(slow, shared_map(), {});
    }
    ~Meeting() {
        allocator.close();
        TestAllocator::thread_ends();
        delete &allocator;
    }
    // Waits until `size` threads are in the driver. A thread that waits in vain was kept alone; after that, no thread
    // waits.
    void wait() {
        std::unique_lock lock(meet);
        if (++inside >= size)
            return complete.notify_all();
        const auto there = [&] { return inside >= size || given_up; };
        if (complete.wait_for(lock, tests::kLongEnough, there) && !given_up)
            return;
        alone++;
        given_up = true;
        complete.notify_all();
    }
};

}  // namespace

TEST_CASE("a slow driver holds up only who needs what it was asked for") {
    Meeting memory;
    std::atomic<unsigned> refused{0};
    std::vector<std::thread> threads;
    memory.size = 4;
    for (unsigned i = 0; i < memory.size; i++)
        threads.emplace_back([&] {
            AllocationError denied;
            refused += !memory.allocator.allocate(100 * kMiB, &denied);
            TestAllocator::thread_ends();
        });
    for (std::thread& thread : threads)
        thread.join();
    CHECK(memory.alone == 0);
    CHECK(refused.load() == 0);
    CHECK(memory.takes == memory.size);
}

TEST_CASE("threads that need little at the same time take one segment together") {
    constexpr unsigned kThreads = 8;
    struct Crowd {
        std::atomic<unsigned> count{0};
        std::atomic<pid_t> threads[kThreads] = {};
    };
    struct Patient : MadeUpMemory {
        Crowd crowd;
    } memory;
    TestAllocator& allocator = *new TestAllocator;
    BackingTable slow = memory.backing();
    static uint64_t (*const at_once)(void*, uint64_t, AllocationError*) = slow.take;
    // The driver answers when all the others sleep.
    slow.take = [](void* self, uint64_t bytes, AllocationError* denied) {
        Crowd& crowd = static_cast<Patient*>(static_cast<MadeUpMemory*>(self))->crowd;
        for (std::atomic<pid_t>& other : crowd.threads) {
            while (!other)
                std::this_thread::yield();
            if (other != this_thread())
                await_sleep(other);
        }
        return at_once(self, bytes, denied);
    };
    allocator.open(slow, shared_map(), {});
    std::atomic<unsigned> refused{0};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < kThreads; i++)
        threads.emplace_back([&, i] {
            memory.crowd.threads[i] = this_thread();
            AllocationError denied;
            refused += !allocator.allocate(200 * kKiB, &denied);
            // Until all have theirs: whoever ends sleeps no more.
            memory.crowd.count++;
            while (memory.crowd.count < kThreads)
                std::this_thread::yield();
            TestAllocator::thread_ends();
        });
    for (std::thread& thread : threads)
        thread.join();
    CHECK(refused.load() == 0);
    CHECK(memory.takes == 1);
    CHECK(memory.held == 2 * kMiB);
    allocator.close();
    delete &allocator;
}

TEST_CASE("who is short of memory has what is left of a segment that another thread is taking") {
    Meeting memory;
    memory.limit = 2 * kMiB;
    std::atomic<pid_t> other{0};
    AllocationError denied;
    uint64_t first = 0;
    std::thread thread([&] {
        other = this_thread();
        first = memory.allocator.allocate(kMiB, &denied);
        TestAllocator::thread_ends();
    });
    while (!other)
        std::this_thread::yield();
    await_sleep(other);  // in the driver
    uint64_t second = 0;
    std::atomic<pid_t> late{0};
    std::thread visitor([&] {
        late = this_thread();
        AllocationError why;
        second = memory.allocator.allocate(900 * kKiB, &why);
        TestAllocator::thread_ends();
    });
    while (!late)
        std::this_thread::yield();
    await_sleep(late);
    memory.wait();  // lets the first one go on
    thread.join();
    visitor.join();
    CHECK(first);
    CHECK(second);
    CHECK(memory.held == 2 * kMiB);
}

TEST_CASE("what is preallocated comes in a half, a quarter, an eighth and the rest, so that a part of it can go back") {
    Allocator a({TestAllocator::Reuse::strict, true}, 8 * kGiB);
    REQUIRE(a.allocator.top_up(&a.denied));
    std::vector<uint64_t> pieces;
    for (const auto& [address, bytes] : a.memory.live)
        pieces.push_back(bytes / kGiB);
    CHECK(pieces == std::vector<uint64_t>{4, 2, 1, 1});
}

// One thread exchanges what is idle for a segment that fits, and when the driver has it back there is room for another
// thread's as well.
TEST_CASE("what a thread that is short of memory gives back is for that thread, and nobody else takes it first") {
    struct Short : MadeUpMemory {
        TestAllocator& allocator = *new TestAllocator;
        std::thread other;
        std::atomic<pid_t> id{0};
        std::atomic<bool> over{false};
        uint64_t got = 0;
    } memory;
    memory.limit = 128 * kMiB;
    BackingTable watched = memory.backing();
    static bool (*const at_once)(void*, uint64_t, uint64_t) = watched.give_back;
    watched.give_back = [](void* self, uint64_t address, uint64_t bytes) {
        const bool done = at_once(self, address, bytes);
        auto& m = *static_cast<Short*>(static_cast<MadeUpMemory*>(self));
        if (m.other.joinable())
            return done;
        m.other = std::thread([&m] {
            m.id = this_thread();
            AllocationError denied;
            m.got = m.allocator.allocate(80 * kMiB, &denied);
            TestAllocator::thread_ends();
            m.over.wait(false);  // it sleeps, whether it has waited before or not
        });
        while (!m.id)
            std::this_thread::yield();
        await_sleep(m.id);
        return done;
    };
    memory.allocator.open(watched, shared_map(), {});
    AllocationError denied;
    int error = 0;
    const uint64_t idle = memory.allocator.allocate(64 * kMiB, &denied);
    REQUIRE(TestAllocator::free(shared_map(), idle, &error) == TestAllocator::Freed::done);
    CHECK(memory.allocator.allocate(100 * kMiB, &denied));
    REQUIRE(memory.other.joinable());
    memory.over = true;
    memory.over.notify_all();
    memory.other.join();
    CHECK_FALSE(memory.got);
    memory.allocator.close();
    TestAllocator::thread_ends();
    delete &memory.allocator;
}

TEST_CASE("whether a range is within a block is told without the allocator's lock") {
    Allocator a;
    const uint64_t large = a.allocate(600 * kMiB);
    struct Visit {
        uint64_t large;
        unsigned blocks = 0, wrong = 0;
    } visit{large};
    // Visits have the allocator locked: whoever wants the lock in one waits for ever.
    const auto segment = [](const Segment&, void*) {};
    const auto block = [](const Block&, void* argument) {
        auto& v = *static_cast<Visit*>(argument);
        v.blocks++;
        for (uint64_t at = 0; at < 600 * kMiB; at += 2 * kMiB)
            v.wrong += !shared_map().holds(v.large + at + 5000, kMiB);
        v.wrong += shared_map().holds(v.large + 599 * kMiB, 2 * kMiB);
    };
    a.allocator.inspect(segment, block, &visit);
    CHECK(visit.blocks > 0);
    CHECK(visit.wrong == 0);
}

}  // namespace cuslice
