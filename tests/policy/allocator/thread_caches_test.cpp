// SPDX-License-Identifier: Apache-2.0
// Thread caches: how much all threads may keep together, and how it is taken from them.
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/policy/allocator/made_up_memory.h"
#include "tests/refused_calls.h"

namespace cuslice {

using Freed = TestAllocator::Freed;

namespace {

// A crowd that comes and goes in step: each thread does its part of every step, and waits for the others.
class Steps {
  public:
    explicit Steps(unsigned threads) : threads_(threads) {}
    void next() {
        const unsigned step = step_.load();
        if (++there_ == threads_) {
            there_ = 0;
            step_++;
        }
        while (step_.load() == step)
            std::this_thread::yield();
    }

  private:
    const unsigned threads_;
    std::atomic<unsigned> there_{0}, step_{0};
};

// How often a thread had to leave its own store, which is when it asks whether somebody else needs memory.
struct Asked : MadeUpMemory {
    std::atomic<unsigned> slow{0};
    TestAllocator& allocator = *new TestAllocator;

    explicit Asked(uint64_t most = 64 * kGiB) {
        limit = most;
        BackingTable counted = backing();
        counted.wanted = [](void* self) {
            static_cast<Asked*>(static_cast<MadeUpMemory*>(self))->slow++;
            return false;
        };
        allocator.open(counted, shared_map(), {});
    }
    ~Asked() {
        allocator.close();
        TestAllocator::thread_ends();
        delete &allocator;
    }
    uint64_t allocate(uint64_t bytes) {
        AllocationError denied;
        return allocator.allocate(bytes, &denied);
    }
    // Allocates this many blocks. Returns how many of them the thread's own store could not serve.
    unsigned slow_of(int blocks) {
        const unsigned before = slow;
        for (int i = 0; i < blocks; i++)
            REQUIRE(allocate(1000));
        return slow - before;
    }
};

constexpr int kNoFilter = 2;

// A thread of a process that may ask for no barrier any more keeps blocks. 0 if another one can have all of it, 1 if
// not, kNoFilter if no seccomp filter can be set.
int take_all_without_barriers() {
    Allocator a({}, 16 * kMiB);
    std::atomic<int> step{0};
    std::thread keeper([&] {
        AllocationError denied;
        int error = 0;
        std::vector<uint64_t> blocks;
        for (uint64_t size = 1; size <= 24; size++)
            for (int i = 0; i < 40; i++)
                if (const uint64_t block = a.allocator.allocate(2600 * size, &denied))
                    blocks.push_back(block);
        for (const uint64_t block : blocks)
            TestAllocator::free(shared_map(), block, &error);
        step = 1;
        while (step < 2)
            std::this_thread::yield();
        // Its store works as before, though it has been emptied.
        for (int i = 0; i < 100; i++) {
            const uint64_t block = a.allocator.allocate(1000, &denied);
            if (!block || TestAllocator::free(shared_map(), block, &error) != Freed::done)
                step = 3;
        }
        TestAllocator::thread_ends();
    });
    while (step < 1)
        std::this_thread::yield();
    const bool refused = tests::refuse_call(SYS_membarrier, EPERM);
    const uint64_t all = a.allocate(16 * kMiB);
    const bool freed = all && a.free(all) == Freed::done;
    step = 2;
    keeper.join();
    return !refused ? kNoFilter : !freed || step != 2 ? 1 : 0;
}

}  // namespace

TEST_CASE("what many threads keep to themselves is bounded by all of them together") {
    constexpr unsigned kThreads = 64;
    Allocator a;
    Steps steps(kThreads);
    std::atomic<uint64_t> live{0}, most_live{0};
    std::vector<std::thread> threads;
    for (unsigned who = 0; who < kThreads; who++)
        threads.emplace_back([&, who] {
            std::mt19937 random(who);
            AllocationError denied;
            int error = 0;
            for (int step = 0; step < 20; step++) {
                std::vector<uint64_t> blocks;
                for (uint64_t mine = 0; mine < 400 * kKiB;) {
                    const uint64_t bytes = 1 + random() % (64 * kKiB);
                    blocks.push_back(a.allocator.allocate(bytes, &denied));
                    mine += bytes;
                    live += bytes;
                }
                steps.next();
                if (who == 0)
                    most_live = std::max(most_live.load(), live.load());
                steps.next();
                live = 0;
                for (const uint64_t block : blocks)
                    TestAllocator::free(shared_map(), block, &error);
                steps.next();
            }
            TestAllocator::thread_ends();
        });
    for (std::thread& thread : threads)
        thread.join();
    // 24 classes' spans, what is lost to rounding, and 4 MiB for all threads.
    CAPTURE(most_live.load() / kMiB, a.memory.peak / kMiB);
    CHECK(a.memory.peak < 2 * most_live.load());
}

TEST_CASE("a thread's store grows with its use") {
    Asked a;
    CHECK(a.slow_of(1) == 1);
    CHECK(a.slow_of(1) == 1);
    CHECK(a.slow_of(2) == 1);
    CHECK(a.slow_of(4) == 1);
    CHECK(a.slow_of(8) == 1);
    CHECK(a.slow_of(16) == 1);
    CHECK(a.slow_of(32) == 1);
    CHECK(a.slow_of(128) == 2);  // half a magazine
}

TEST_CASE("after memory was short, nobody takes more than is needed, for a while") {
    Asked a(64 * kMiB);
    a.slow_of(500);
    REQUIRE_FALSE(a.allocate(100 * kMiB));
    CHECK(a.slow_of(100) == 100);
    a.slow_of(500);
    CHECK(a.slow_of(500) < 20);
}

TEST_CASE("one thread's sizes of the past make way for those of now") {
    Asked a;
    int error = 0;
    // More than a thread may keep where little is held: every class in turn.
    for (int round = 0; round < 2; round++)
        for (uint64_t bytes = 512; bytes <= 64 * kKiB; bytes += 512) {
            std::vector<uint64_t> blocks;
            for (int i = 0; i < 40; i++)
                blocks.push_back(a.allocate(bytes));
            for (const uint64_t block : blocks)
                REQUIRE(TestAllocator::free(shared_map(), block, &error) == Freed::done);
        }
    constexpr uint64_t kSmall = 5000, kLargest = 64 * kKiB;
    const auto slow_pairs = [&](uint64_t bytes) {
        const unsigned before = a.slow;
        for (int i = 0; i < 1000; i++)
            REQUIRE(TestAllocator::free(shared_map(), a.allocate(bytes), &error) == Freed::done);
        return a.slow - before;
    };
    for (const uint64_t bytes : {kSmall, kLargest})
        CHECK(slow_pairs(bytes) <= 1);
    // And so do large blocks that are almost all it keeps.
    a.allocator.trim(0);
    for (int i = 0; i < 300; i++)
        REQUIRE(a.allocate(1));  // until memory is not short any more
    REQUIRE(TestAllocator::free(shared_map(), a.allocate(4 * kMiB - 100 * kKiB), &error) == Freed::done);
    CHECK(slow_pairs(kLargest) <= 3);
}

TEST_CASE("what a thread keeps can be had where the kernel refuses barriers from some time on") {
    if (!tests::can_filter_calls())
        return;
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0)
        _exit(take_all_without_barriers());
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace cuslice
