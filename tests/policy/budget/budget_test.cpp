// SPDX-License-Identifier: Apache-2.0
// Budget by itself: what it counts, what it refuses, and a long random comparison with arithmetic that can't overflow.
#include "policy/budget/budget.h"

#include <deque>
#include <random>
#include <vector>

#include "tests/catch.h"

namespace cuslice {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr uint64_t kMiB = 1 << 20;
const uint64_t kMax = Budget::charged(~0ull);  // that can be charged at all

TEST_CASE("bytes are charged in whole units, and a huge figure saturates") {
    CHECK(Budget::charged(0) == 0);
    CHECK(Budget::charged(1) == 512);
    CHECK(Budget::charged(512) == 512);
    CHECK(Budget::charged(513) == 1024);
    CHECK(Budget::charged(kMax) == kMax);
    CHECK(Budget::charged(kMax + 1) == kMax);
    CHECK(Budget::charged(~0ull) == kMax);
}

TEST_CASE("a budget is filled to its ceiling and not a unit further") {
    Budget budget;
    budget.set_ceiling(10 * Budget::kUnit);
    REQUIRE(budget.reserve(9 * Budget::kUnit));
    LimitError why;
    CHECK_FALSE(budget.reserve(Budget::kUnit + 1, &why));
    CHECK(why.requested == Budget::kUnit + 1);
    CHECK(why.used == 9 * Budget::kUnit);
    CHECK(why.ceiling == 10 * Budget::kUnit);
    CHECK(budget.used() == 9 * Budget::kUnit);
    CHECK(budget.reserve(1));
    CHECK_FALSE(budget.reserve(1));
    CHECK(budget.reserve(0));  // nothing is always to be had, as with the driver
}

TEST_CASE("a huge request does not wrap round to a small sum") {
    Budget budget;
    budget.set_ceiling(kMiB);
    REQUIRE(budget.reserve(kMiB / 2));
    for (const uint64_t huge :
         std::vector<uint64_t>{~0ull, ~0ull - 511, ~0ull - kMiB / 2, 1ull << 63, kMax, kMax + 1, kMiB}) {
        CAPTURE(huge);
        CHECK_FALSE(budget.reserve(huge));
    }
    CHECK(budget.used() == kMiB / 2);
}

TEST_CASE("without a ceiling the counter itself is the limit") {
    Budget budget;
    REQUIRE(budget.reserve(kMax));
    CHECK_FALSE(budget.reserve(1));
    CHECK_FALSE(budget.reserve(~0ull));
    CHECK(budget.used() == kMax);
    budget.roll_back(kMax);
    CHECK(budget.used() == 0);
}

TEST_CASE("facts are charged over the ceiling, and everything is refused until they are under it again") {
    Budget budget;
    budget.set_ceiling(4 * kMiB);
    budget.adjust(0, 6 * kMiB);
    CHECK(budget.used() == 6 * kMiB);
    CHECK_FALSE(budget.reserve(1));
    CHECK_FALSE(budget.reserve(0));
    budget.adjust(6 * kMiB, 3 * kMiB);
    CHECK(budget.reserve(kMiB));
    CHECK_FALSE(budget.reserve(1));
}

TEST_CASE("a lowered ceiling is obeyed by the next reservation") {
    Budget budget;
    budget.set_ceiling(8 * kMiB);
    REQUIRE(budget.reserve(4 * kMiB));
    budget.set_ceiling(4 * kMiB);
    CHECK_FALSE(budget.reserve(1));
    budget.set_ceiling(5 * kMiB);
    CHECK(budget.reserve(kMiB));
}

TEST_CASE("a snapshot is settled only with nothing in flight and nothing done since") {
    Budget budget;
    CHECK(budget.settled(budget.snapshot()));
    REQUIRE(budget.reserve(kMiB));
    CHECK_FALSE(budget.settled(budget.snapshot()));
    budget.commit();
    const Budget::Snapshot before = budget.snapshot();
    CHECK(before.used() == kMiB);
    CHECK(budget.settled(before));
    budget.begin_release();
    CHECK_FALSE(budget.settled(budget.snapshot()));
    CHECK_FALSE(budget.settled(before));
    budget.end_release(kMiB);
    CHECK_FALSE(budget.settled(before));
    CHECK(budget.settled(budget.snapshot()));
}

TEST_CASE("what came and went since a snapshot is noticed, though the total is as it was") {
    Budget budget;
    const Budget::Snapshot before = budget.snapshot();
    REQUIRE(budget.reserve(kMiB));
    budget.commit();
    budget.begin_release();
    budget.end_release(kMiB);
    CHECK(budget.used() == before.used());
    CHECK_FALSE(budget.settled(before));
}

// Sizes of every order of magnitude, near whole units as often as not.
uint64_t random_size(std::mt19937_64& random) {
    const unsigned bits = static_cast<unsigned>(random() % 65);
    const uint64_t size = bits == 64 ? random() : random() & ((1ull << bits) - 1);
    return random() % 3 ? size : size / Budget::kUnit * Budget::kUnit;
}

TEST_CASE("random sequences agree with exact arithmetic", "[fuzz]") {
    const auto seed = GENERATE(1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u);
    std::mt19937_64 random(seed);
    Budget budget;
    Wide used = 0;
    uint64_t ceiling = Budget::kUnlimited;
    uint64_t fact = 0;
    std::deque<uint64_t> held, in_flight, releasing;
    const auto take = [&](std::deque<uint64_t>& from) {
        const size_t at = random() % from.size();
        const uint64_t bytes = from[at];
        from.erase(from.begin() + static_cast<ptrdiff_t>(at));
        return bytes;
    };
    unsigned granted = 0, refused = 0;
    for (int step = 0; step < 100'000; ++step) {
        const unsigned what = random() % 16;
        if (what < 6) {
            const uint64_t bytes = random_size(random);
            LimitError why;
            // A request that doesn't fit into the counter is refused too.
            const Wide whole = (Wide{bytes} + 511) / 512 * 512;
            const bool fits = used + whole <= ceiling && used + whole <= kMax;
            const bool got = budget.reserve(bytes, &why);
            // A request beyond what can be charged at all is charged as the most that can be.
            if (bytes <= kMax)
                REQUIRE(got == fits);
            if (got) {
                used += Budget::charged(bytes);
                in_flight.push_back(bytes);
                ++granted;
            } else {
                REQUIRE(why.requested == bytes);
                REQUIRE(why.used == used);
                REQUIRE(why.ceiling == ceiling);
                ++refused;
            }
        } else if (what < 9 && !in_flight.empty()) {
            held.push_back(take(in_flight));
            budget.commit();
        } else if (what == 9 && !in_flight.empty()) {
            const uint64_t bytes = take(in_flight);
            budget.roll_back(bytes);
            used -= Budget::charged(bytes);
        } else if (what < 12 && !held.empty()) {
            releasing.push_back(take(held));
            budget.begin_release();
        } else if (what == 12 && !releasing.empty()) {
            held.push_back(take(releasing));
            budget.cancel_release();
        } else if (what == 13 && !releasing.empty()) {
            const uint64_t bytes = take(releasing);
            budget.end_release(bytes);
            used -= Budget::charged(bytes);
        } else if (what == 14) {
            const uint64_t now = random() % (64 * kMiB);
            if (used - Budget::charged(fact) + Budget::charged(now) <= kMax) {
                budget.adjust(fact, now);
                used = used - Budget::charged(fact) + Budget::charged(now);
                fact = now;
            }
        } else if (what == 15) {
            ceiling = random() % 4 ? random_size(random) : Budget::kUnlimited;
            budget.set_ceiling(ceiling);
        }
        REQUIRE(Wide{budget.used()} == used);
        REQUIRE(budget.settled(budget.snapshot()) == (in_flight.empty() && releasing.empty()));
    }
    CHECK(granted > 1000);
    CHECK(refused > 1000);
}

}  // namespace
}  // namespace cuslice
