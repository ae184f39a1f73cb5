// SPDX-License-Identifier: Apache-2.0
#include "policy/budget/reservation.h"

#include "tests/catch.h"

namespace cuslice {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TEST_CASE("a reservation that nobody commits is rolled back, in the end and not before") {
    Budget budget;
    REQUIRE(budget.reserve(3 * kMiB));
    {
        const Reservation reservation(budget, 3 * kMiB);
        CHECK(budget.used() == 3 * kMiB);
        CHECK_FALSE(budget.settled(budget.snapshot()));
    }
    CHECK(budget.used() == 0);
    CHECK(budget.settled(budget.snapshot()));
}

TEST_CASE("a committed reservation keeps its bytes, and is in flight no more") {
    Budget budget;
    REQUIRE(budget.reserve(3 * kMiB));
    {
        Reservation reservation(budget, 3 * kMiB);
        reservation.commit();
        CHECK(budget.settled(budget.snapshot()));
    }
    CHECK(budget.used() == 3 * kMiB);
    CHECK(budget.settled(budget.snapshot()));
}

TEST_CASE("a reservation that is somebody else's to settle is left alone") {
    Budget budget;
    REQUIRE(budget.reserve(3 * kMiB));
    {
        Reservation reservation(budget, 3 * kMiB);
        budget.roll_back(3 * kMiB);
        reservation.disown();
    }
    CHECK(budget.used() == 0);
    CHECK(budget.settled(budget.snapshot()));
}

}  // namespace
}  // namespace cuslice
