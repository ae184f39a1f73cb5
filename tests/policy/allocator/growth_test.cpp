// SPDX-License-Identifier: Apache-2.0
#include "policy/allocator/growth.h"

#include "tests/catch.h"

namespace cuslice {

namespace {
constexpr uint64_t kMiB = 1 << 20, kPlenty = 1ull << 40;
}

TEST_CASE("segments start at 2 MiB and double to 8 MiB") {
    uint64_t held = 0, last = 0;
    for (const uint64_t expected : {2, 4, 8, 8, 8}) {
        last = GrowthPolicy::next(1000, held, last, kPlenty);
        CHECK(last == expected * kMiB);
        held += last;
    }
}

TEST_CASE("later segments are a sixth of what there is") {
    CHECK(GrowthPolicy::next(1024, 1500 * kMiB, 200 * kMiB, kPlenty) == 250 * kMiB);
    // It takes no more than some hundred steps to any size.
    uint64_t held = 0, last = 0;
    int steps = 0;
    for (; held < 100'000 * kMiB; steps++)
        held += last = GrowthPolicy::next(1000, held, last, kPlenty);
    CHECK(steps < 160);
}

TEST_CASE("a segment is never smaller than the request, and whole granules") {
    CHECK(GrowthPolicy::next(100 * kMiB + 1, 0, 0, kPlenty) == 102 * kMiB);
    CHECK(GrowthPolicy::next(3 * kMiB, 0, 0, kPlenty) == 4 * kMiB);
    CHECK(GrowthPolicy::least(~0ull - 5) == ~0ull - 5);
}

TEST_CASE("a segment is for whole blocks of the request's size, as many as are nearest to its own") {
    const uint64_t held = 1500 * kMiB, last = 200 * kMiB;  // and so 250 MiB
    CHECK(GrowthPolicy::next(32 * kMiB, held, last, kPlenty) == 256 * kMiB);
    CHECK(GrowthPolicy::next(48 * kMiB, held, last, kPlenty) == 240 * kMiB);
    CHECK(GrowthPolicy::next(61 * kMiB, held, last, kPlenty) == 244 * kMiB);
    CHECK(GrowthPolicy::next(63 * kMiB, held, last, kPlenty) == 252 * kMiB);
    CHECK(GrowthPolicy::next(180 * kMiB, held, last, kPlenty) == 180 * kMiB);
    CHECK(GrowthPolicy::next(9 * kMiB + 1, held, last, kPlenty) == 254 * kMiB);
}

TEST_CASE("a segment is clipped to the room there is, and takes the rest with it") {
    CHECK(GrowthPolicy::next(1000, 1600 * kMiB, 64 * kMiB, 51 * kMiB) == 50 * kMiB);
    CHECK(GrowthPolicy::next(1000, 1600 * kMiB, 64 * kMiB, 150 * kMiB) == 150 * kMiB);
    CHECK(GrowthPolicy::next(1000, 1600 * kMiB, 64 * kMiB, 260 * kMiB) == 128 * kMiB);
    // Where there is no room for the request the budget is to say so.
    CHECK(GrowthPolicy::next(60 * kMiB, 1600 * kMiB, 64 * kMiB, 50 * kMiB) == 60 * kMiB);
}

TEST_CASE("a huge segment suits a block that leaves less than half of it over") {
    CHECK(GrowthPolicy::huge(64 * kMiB));
    CHECK_FALSE(GrowthPolicy::huge(64 * kMiB - 1));
    CHECK(GrowthPolicy::suits(170 * kMiB, 100 * kMiB));
    CHECK_FALSE(GrowthPolicy::suits(172 * kMiB, 100 * kMiB));
}

TEST_CASE("a segment is made smaller to leave it at what is enough, by half at most and never below the request") {
    CHECK(GrowthPolicy::enough(1000 * kMiB) == 1070 * kMiB);
    CHECK(GrowthPolicy::enough(~0ull) == ~0ull);
    CHECK(GrowthPolicy::within(1070 * kMiB, 900 * kMiB, 160 * kMiB, kMiB) == 160 * kMiB);
    CHECK(GrowthPolicy::within(1070 * kMiB, 971 * kMiB, 160 * kMiB, kMiB) == 98 * kMiB);
    CHECK(GrowthPolicy::within(1070 * kMiB, 991 * kMiB, 160 * kMiB, kMiB) == 0);
    CHECK(GrowthPolicy::within(1070 * kMiB, 971 * kMiB, 160 * kMiB, 99 * kMiB) == 0);
    CHECK(GrowthPolicy::within(1070 * kMiB, 1100 * kMiB, 160 * kMiB, kMiB) == 0);
    CHECK(GrowthPolicy::within(~0ull, 1300 * kMiB, 160 * kMiB, kMiB) == 160 * kMiB);
}

TEST_CASE("after a refusal a tenth less is asked, down to what is needed, and then no more") {
    uint64_t asked = 100 * kMiB;
    CHECK((asked = GrowthPolicy::after_refusal(asked, 70 * kMiB)) == 90 * kMiB);
    CHECK((asked = GrowthPolicy::after_refusal(asked, 70 * kMiB)) == 80 * kMiB);
    CHECK((asked = GrowthPolicy::after_refusal(asked, 70 * kMiB)) == 72 * kMiB);
    CHECK((asked = GrowthPolicy::after_refusal(asked, 70 * kMiB)) == 70 * kMiB);
    CHECK(GrowthPolicy::after_refusal(asked, 70 * kMiB) == 0);
}

}  // namespace cuslice
