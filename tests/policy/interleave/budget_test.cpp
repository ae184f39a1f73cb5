// SPDX-License-Identifier: Apache-2.0
// Threads that meet in a budget, in the records of allocations, and at locks, in any order.
#include "policy/budget/budget.h"
#include <atomic>

#include "policy/base/event_count.h"
#include "policy/budget/allocation_table.h"
#include "tests/interleave/explore.h"

namespace cuslice {
namespace {

using tests::explore;
using tests::Schedule;
using Bodies = std::vector<Schedule::Body>;

constexpr uint64_t kGiB = 1ull << 30;

// Two of five under eight: one of them at most has it at any moment.
struct TwoReserve {
    TwoReserve() { budget.set_ceiling(8 * kGiB); }
    Bodies bodies() {
        const auto body = [this] {
            for (int i = 0; i < 3; i++) {
                if (!budget.reserve(5 * kGiB))
                    continue;
                if (++holders != 1)
                    broken = true;
                i == 1 ? budget.commit() : void();
                holders--;
                i == 1 ? budget.release(5 * kGiB) : budget.roll_back(5 * kGiB);
            }
        };
        return {body, body};
    }
    void check() {
        REQUIRE_FALSE(broken);
        REQUIRE(budget.used() == 0);
        REQUIRE(budget.reserve(8 * kGiB));
    }
    Budget budget;
    std::atomic<int> holders{0};
    std::atomic<bool> broken{false};
};

// A figure is settled only while nothing is in flight.
struct Settled {
    Settled() { budget.set_ceiling(8 * kGiB); }
    Bodies bodies() {
        return {[this] {
                    if (budget.reserve(kGiB)) {
                        outside += kGiB;  // the driver has given it
                        budget.commit();
                    }
                    budget.begin_release();
                    outside -= kGiB;
                    budget.end_release(kGiB);
                },
                [this] {
                    for (int i = 0; i < 4; i++) {
                        const Budget::Snapshot before = budget.snapshot();
                        const uint64_t seen = outside;
                        broken = broken || (budget.settled(before) && before.used() != seen);
                    }
                }};
    }
    void check() {
        REQUIRE_FALSE(broken);
        REQUIRE(budget.used() == 0);
    }
    Budget budget;
    std::atomic<uint64_t> outside{0};
    bool broken = false;
};

constexpr uint64_t kAddress = 1ull << 40;

// One for all runs, as a process has one. Each leaves it empty.
AllocationTable& the_table() {
    static AllocationTable table;
    return table;
}

Allocation record(uint64_t bytes, uint16_t context) { return {kAddress, bytes, context, 0, 0}; }

// One thread frees an address, which the driver gives to another before the first has taken its record.
struct SameAddress {
    Bodies bodies() {
        table.insert(record(512, 1));
        return {[this] { first = table.erase(kAddress); },
                [this] {
                    good = table.insert(record(1024, 2));
                    second = table.erase(kAddress);
                }};
    }
    // The first to come takes the oldest; together they take both, and nothing is left.
    void check() {
        REQUIRE(good);
        REQUIRE(first.bytes + second.bytes == 512 + 1024);
        REQUIRE(table.find(kAddress).address == 0);
        REQUIRE(table.erase(kAddress).address == 0);
    }
    AllocationTable& table = the_table();
    Allocation first, second;
    bool good = false;
};

// A context's end takes its records while others come and go beside them.
struct ContextEnds {
    Bodies bodies() {
        table.insert(record(512, 1));
        table.insert({kAddress + 512, 512, 1, 0, 0});
        return {[this] {
                    table.erase_context(
                        1, [](const Allocation& one, void* sum) { *static_cast<uint64_t*>(sum) += one.bytes; }, &ended);
                },
                [this] {
                    good = table.insert({kAddress + 1024, 512, 2, 0, 0});
                    good = good && table.erase(kAddress + 1024).bytes == 512;
                    freed = table.erase(kAddress + 512).bytes;
                }};
    }
    void check() {
        REQUIRE(good);
        REQUIRE(ended + freed == 1024);
        uint64_t left = 0;
        table.for_each([](const Allocation& one, void* sum) { *static_cast<uint64_t*>(sum) += one.bytes; }, &left);
        REQUIRE(left == 0);
    }
    AllocationTable& table = the_table();
    uint64_t ended = 0, freed = 0;
    bool good = false;
};

// A thread that waits for an event misses none, whenever it happens: else no thread can go on.
struct Waits {
    Bodies bodies() {
        return {[this] {
                    for (uint32_t seen = event.now(); !happened; seen = event.now())
                        event.wait(seen);
                },
                [this] {
                    happened = true;
                    event.happened();
                }};
    }
    void check() { REQUIRE(happened); }
    EventCount event;
    std::atomic<bool> happened{false};
};

// A lock is one thread's, also while another forks, which takes all locks that there are.
struct Locks {
    Bodies bodies() {
        const auto body = [this] {
            for (int i = 0; i < 2; i++) {
                mutex.lock();
                inside();
                mutex.unlock();
            }
        };
        return {body, body, [this] {
                    the_lock_list.take();
                    inside();
                    the_lock_list.give_back();
                }};
    }
    void inside() {
        if (holders++ != 0)
            broken = true;
        holders--;
    }
    void check() {
        REQUIRE_FALSE(broken);
        REQUIRE(mutex.try_lock());
        mutex.unlock();
    }
    static inline Mutex mutex{LockRank::table};  // it stays in the list
    std::atomic<int> holders{0};
    std::atomic<bool> broken{false};
};

}  // namespace

TEST_CASE("interleaved: of two reservations that don't both fit one is held at a time") { explore<TwoReserve>(); }
TEST_CASE("interleaved: a settled figure has nothing in flight") { explore<Settled>(); }
TEST_CASE("interleaved: an address is freed in one thread and handed out in another") { explore<SameAddress>(); }
TEST_CASE("interleaved: a context ends while records come and go beside its own") { explore<ContextEnds>(); }
TEST_CASE("interleaved: whoever waits for an event misses none") { explore<Waits>(); }
TEST_CASE("interleaved: a lock is one thread's, also while another forks") { explore<Locks>(); }

}  // namespace cuslice
