// SPDX-License-Identifier: Apache-2.0
// Budget from several threads at once.
#include <random>

#include "policy/budget/budget.h"
#include "tests/catch.h"
#include "tests/policy/rounds.h"

namespace cuslice {
namespace {

using tests::Meeting;
using tests::on_threads;

constexpr uint64_t kGiB = 1ull << 30;

TEST_CASE("of two reservations of 5 under 8, one is granted and one refused, in every round", "[slow]") {
    constexpr int kRounds = 30'000;
    Budget budget;
    budget.set_ceiling(8 * kGiB);
    Meeting begin(2), end(2);
    std::atomic<int> granted{0};
    int both = 0, none = 0;
    on_threads(2, [&](unsigned thread) {
        for (int round = 0; round < kRounds; ++round) {
            begin.wait();
            const bool got = budget.reserve(5 * kGiB);
            granted.fetch_add(got);
            end.wait();
            if (got)
                budget.roll_back(5 * kGiB);
            if (thread != 0)
                continue;
            const int count = granted.exchange(0);
            both += count == 2;
            none += count == 0;
        }
    });
    CHECK(both == 0);
    CHECK(none == 0);
    CHECK(budget.used() == 0);
}

TEST_CASE("never are two reservations of 5 held at once under 8") {
    Budget budget;
    budget.set_ceiling(8 * kGiB);
    std::atomic<int> holders{0};
    std::atomic<long> violations{0}, granted{0};
    on_threads(3, [&](unsigned) {
        // No meetings and nothing else in the loop: the threads are inside reserve() most of the time.
        for (int i = 0; i < 4'000'000; ++i) {
            if (!budget.reserve(5 * kGiB))
                continue;
            if (holders.fetch_add(1, std::memory_order_relaxed) != 0)
                violations++;
            holders.fetch_sub(1, std::memory_order_relaxed);
            budget.roll_back(5 * kGiB);
            granted.fetch_add(1, std::memory_order_relaxed);
        }
    });
    CHECK(violations == 0);
    CHECK(granted > 1000);
    CHECK(budget.used() == 0);
}

TEST_CASE("no interleaving of threads ever holds more than the ceiling, and in the end nothing is left") {
    constexpr unsigned kThreads = 8;
    constexpr uint64_t kCeiling = 1000 * Budget::kUnit;
    Budget budget;
    budget.set_ceiling(kCeiling);
    // Bytes that a driver would have handed out: raised after a grant, lowered before the release ends.
    std::atomic<int64_t> really{0};
    std::atomic<int> violations{0};
    std::atomic<long> granted{0}, refused{0};
    on_threads(kThreads, [&](unsigned thread) {
        std::mt19937 random(thread);
        for (int i = 0; i < 40'000; ++i) {
            const uint64_t bytes = random() % (300 * Budget::kUnit);
            if (!budget.reserve(bytes)) {
                refused.fetch_add(1, std::memory_order_relaxed);
                continue;
            }
            granted.fetch_add(1, std::memory_order_relaxed);
            const auto charged = static_cast<int64_t>(Budget::charged(bytes));
            if (random() % 8 == 0) {
                budget.roll_back(bytes);  // the driver refused
                continue;
            }
            if (really.fetch_add(charged) + charged > static_cast<int64_t>(kCeiling))
                violations.fetch_add(1);
            budget.commit();
            if (random() % 4 == 0)
                std::this_thread::yield();  // also with fewer cores than threads they meet
            if (budget.used() > kCeiling)
                violations.fetch_add(1);
            budget.begin_release();
            really.fetch_sub(charged);
            if (random() % 8 == 0) {  // the driver refused to free, and did so at the second try
                really.fetch_add(charged);
                budget.cancel_release();
                budget.begin_release();
                really.fetch_sub(charged);
            }
            budget.end_release(bytes);
        }
    });
    CHECK(violations == 0);
    CHECK(granted > 1000);
    CHECK(refused > 100);
    CHECK(budget.used() == 0);
    CHECK(budget.settled(budget.snapshot()));
}

// driver_footprint.cpp relies on this: a figure that is read between a snapshot and settled() belongs to that
// snapshot. An allocation that comes and goes in between leaves the same total, and must be noticed all the same.
TEST_CASE("a figure read in a settled moment is the budget's own") {
    Budget budget;
    std::atomic<uint64_t> really{0};
    std::atomic<bool> stop{false};
    long settled = 0, wrong = 0;
    on_threads(2, [&](unsigned thread) {
        if (thread == 0) {
            for (int i = 0; i < 2'000'000 || settled < 1000; ++i) {
                if (i % 4096 == 0)
                    std::this_thread::yield();  // the other thread may have been stopped half-way
                const Budget::Snapshot now = budget.snapshot();
                const uint64_t figure = really.load();
                if (!budget.settled(now))
                    continue;
                ++settled;
                wrong += figure != now.used();
            }
            stop = true;
            return;
        }
        while (!stop) {
            if (!budget.reserve(Budget::kUnit))
                continue;
            really.fetch_add(Budget::kUnit);
            budget.commit();
            budget.begin_release();
            really.fetch_sub(Budget::kUnit);
            budget.end_release(Budget::kUnit);
            for (unsigned i = 0; i < 16; ++i)
                really.load();  // quiet moments, so that there are settled ones
        }
    });
    CHECK(wrong == 0);
    CHECK(budget.used() == 0);
}

}  // namespace
}  // namespace cuslice
