// SPDX-License-Identifier: Apache-2.0
#include "policy/budget/in_flight.h"

#include "tests/catch.h"
#include "tests/policy/rounds.h"

using cuslice::InFlight;

TEST_CASE("a figure stands if no operation was under way when it was read, and none has begun since") {
    InFlight operations;
    const uint64_t before = operations.snapshot();
    CHECK(operations.settled(before));
    operations.begin();
    CHECK_FALSE(operations.settled(before));
    const uint64_t within = operations.snapshot();
    CHECK_FALSE(operations.settled(within));
    operations.end();
    CHECK_FALSE(operations.settled(before));  // one came between
    CHECK_FALSE(operations.settled(within));
    CHECK(operations.settled(operations.snapshot()));
}

TEST_CASE("it is settled only once every operation has ended") {
    InFlight operations;
    for (int i = 0; i < 3; i++)
        operations.begin();
    for (int i = 0; i < 3; i++) {
        CHECK_FALSE(operations.settled(operations.snapshot()));
        operations.end();
    }
    CHECK(operations.settled(operations.snapshot()));
}

TEST_CASE("two figures that threads change one after the other agree wherever nothing came between") {
    InFlight operations;
    std::atomic<uint64_t> first{0}, second{0};
    std::atomic<unsigned> wrong{0};
    cuslice::tests::on_threads(4, [&](unsigned t) {
        for (int i = 0; i < 20'000; i++) {
            if (t < 2) {
                operations.begin();
                first++;
                second++;
                operations.end();
                continue;
            }
            const uint64_t since = operations.snapshot(), one = first, other = second;
            if (!operations.settled(since))
                continue;
            if (one != other)
                wrong++;
        }
    });
    CHECK(wrong == 0);
    CHECK(operations.settled(operations.snapshot()));
    CHECK(first == second);
}
