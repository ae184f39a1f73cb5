// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/policy/allocator/made_up_memory.h"
#include "tests/policy/rounds.h"

namespace cuslice {

using Freed = TestAllocator::Freed;

namespace {

// Owner of each unit of 512 bytes: a second owner at the same time is an error. The made-up memory hands out no
// address twice, so the table covers far more than is ever held; only pages that are written to take memory.
class Owners {
  public:
    Owners() {
        void* memory = mmap(nullptr, kUnits * sizeof *units_, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        REQUIRE(memory != MAP_FAILED);
        units_ = static_cast<std::atomic<uint32_t>*>(memory);
    }
    ~Owners() { munmap(units_, kUnits * sizeof *units_); }
    Owners(const Owners&) = delete;
    Owners& operator=(const Owners&) = delete;

    void take(uint64_t address, uint64_t bytes, uint32_t who) { change(address, bytes, 0, who); }
    void leave(uint64_t address, uint64_t bytes, uint32_t who) { change(address, bytes, who, 0); }
    std::atomic<unsigned> wrong{0};

  private:
    static constexpr uint64_t kBase = 1ull << 40, kUnits = 1ull << 30;  // of 512 GiB
    void change(uint64_t address, uint64_t bytes, uint32_t from, uint32_t to) {
        const uint64_t first = (address - kBase) / 512, last = (address + bytes - 1 - kBase) / 512;
        for (const uint64_t unit : {first, last}) {  // the ends, which an overlap begins or stops with
            uint32_t expected = from;
            if (unit != first && first == last)
                continue;
            if (unit >= kUnits || !units_[unit].compare_exchange_strong(expected, to))
                wrong++;
            if (first == last)
                break;
        }
    }
    std::atomic<uint32_t>* units_ = nullptr;
};

void run_random(Allocator& a, Owners& owners, uint32_t who, int operations) {
    struct Live {
        uint64_t address, bytes;
    };
    std::mt19937_64 random(who);
    std::vector<Live> live;
    AllocationError denied;
    int error = 0;
    for (int i = 0; i < operations; i++) {
        if (live.size() < 100 && (live.empty() || random() % 2)) {
            const uint64_t bytes = 1 + (random() % 4 ? random() % 60'000 : random() % 400'000);
            const uint64_t address = a.allocator.allocate(bytes, &denied);
            if (!address)
                continue;
            owners.take(address, bytes, who);
            live.push_back({address, bytes});
        } else {
            const size_t k = random() % live.size();
            owners.leave(live[k].address, live[k].bytes, who);
            if (TestAllocator::free(shared_map(), live[k].address, &error) != Freed::done)
                owners.wrong++;
            live[k] = live.back();
            live.pop_back();
        }
    }
    for (const Live& block : live) {
        owners.leave(block.address, block.bytes, who);
        if (TestAllocator::free(shared_map(), block.address, &error) != Freed::done)
            owners.wrong++;
    }
    TestAllocator::thread_ends();
}

}  // namespace

TEST_CASE("64 threads: no block is two threads' at once, and nothing is left when they have ended") {
    const auto options = GENERATE(TestAllocator::Options{}, kDeferred);
    Allocator a(options, 512 * kMiB);
    Owners owners;
    std::vector<std::thread> threads;
    std::atomic<bool> stop{false};
    for (uint32_t who = 1; who <= 64; who++)
        threads.emplace_back([&, who] { run_random(a, owners, who, tests::rounds(2000, 100000)); });
    // Meanwhile everything is taken away from the threads again and again.
    std::thread trimmer([&] {
        while (!stop.load()) {
            a.allocator.trim(8 * kMiB);
            a.allocator.statistics();
            std::this_thread::yield();
        }
    });
    for (std::thread& thread : threads)
        thread.join();
    stop = true;
    trimmer.join();
    CHECK(owners.wrong.load() == 0);
    CHECK(a.allocator.statistics().allocated.current == 0);
    CHECK(a.memory.threads >= 64);
    a.allocator.trim(~0ull);
    CHECK(a.memory.held == 0);
}

TEST_CASE("whoever has grown is not refused because others were quicker to use what came of it") {
    std::atomic<unsigned> refused{0};
    for (int round = 0; round < tests::rounds(60, 2000); round++) {
        Allocator a;
        std::vector<std::thread> threads;
        for (unsigned who = 0; who < 32; who++)
            threads.emplace_back([&] {
                AllocationError denied;
                for (int i = 0; i < 200; i++)
                    refused += !a.allocator.allocate(500 * kKiB, &denied);
                TestAllocator::thread_ends();
            });
        for (std::thread& thread : threads)
            thread.join();
    }
    CHECK(refused.load() == 0);
}

TEST_CASE("one thread allocates and another frees") {
    const auto options = GENERATE(TestAllocator::Options{}, kDeferred);
    Allocator a(options, 256 * kMiB);
    constexpr unsigned kSlots = 256;
    std::vector<std::atomic<uint64_t>> slots(kSlots);
    std::atomic<unsigned> wrong{0};
    const int count = tests::rounds(100'000, 5000000);
    std::thread consumer([&] {
        int error = 0;
        for (int i = 0; i < count; i++) {
            uint64_t address = 0;
            while (!(address = slots[static_cast<unsigned>(i) % kSlots].exchange(0)))
                std::this_thread::yield();
            if (TestAllocator::free(shared_map(), address, &error) != Freed::done)
                wrong++;
        }
        TestAllocator::thread_ends();
    });
    AllocationError denied;
    for (int i = 0; i < count; i++) {
        const uint64_t address = a.allocator.allocate(1 + static_cast<uint64_t>(i) * 7 % 100'000, &denied);
        if (!address) {
            wrong++;
            continue;
        }
        while (slots[static_cast<unsigned>(i) % kSlots].load())
            std::this_thread::yield();
        slots[static_cast<unsigned>(i) % kSlots] = address;
    }
    consumer.join();
    CHECK(wrong.load() == 0);
    a.allocator.trim(~0ull);
    CHECK(a.memory.held == 0);
}

TEST_CASE("two threads free the same block: one of them is told that it was wrong") {
    Allocator a;
    for (int round = 0; round < tests::rounds(20'000, 1000000); round++) {
        const uint64_t address = a.allocate(round / 100 % 2 ? 1000 : 100'000);
        std::atomic<int> ready{0}, done{0}, invalid{0};
        const auto racer = [&] {
            int error = 0;
            ready++;
            while (ready.load() < 2) {
            }
            const Freed freed = TestAllocator::free(shared_map(), address, &error);
            (freed == Freed::done ? done : invalid)++;
        };
        if (round % 100 == 0) {  // threads are dear
            std::thread other([&] {
                racer();
                TestAllocator::thread_ends();
            });
            racer();
            other.join();
            REQUIRE(done.load() == 1);
            REQUIRE(invalid.load() == 1);
        } else {
            REQUIRE(a.free(address) == Freed::done);
            REQUIRE(a.free(address) == Freed::invalid);
        }
    }
}

TEST_CASE(
    "what is asked for while threads are at it could have been: never less than nothing, never more than there was") {
    Allocator a;
    std::atomic<bool> over{false};
    const auto work = [&](uint64_t bytes) {
        AllocationError denied;
        int error = 0;
        while (!over)
            TestAllocator::free(shared_map(), a.allocator.allocate(bytes, &denied), &error);
        TestAllocator::thread_ends();
    };
    std::thread small(work, 1000), large(work, 100'000);
    unsigned wrong = 0;
    const auto enough = static_cast<uint64_t>(tests::rounds(3'000'000, 1000000));
    for (uint64_t allocations = 0; allocations < enough;) {
        const Statistics s = a.allocator.statistics();
        for (const Tally* tally : {&s.allocated, &s.requested, &s.active})
            // A block that comes and goes while the sum is made may be counted, even more than once, but not often.
            wrong += tally->freed > tally->allocated || tally->current > kMiB << 10 || tally->peak > kMiB << 10;
        allocations = s.allocations;
        wrong += s.frees > s.allocations || a.allocator.unused() > kMiB << 10;
    }
    over = true;
    small.join();
    large.join();
    CHECK(wrong == 0);
    CHECK(a.allocator.statistics().allocated.current == 0);
}

}  // namespace cuslice
