// SPDX-License-Identifier: Apache-2.0
// The order of turns that comes of members' steps, on states by themselves.
#include "policy/lease/schedule.h"

#include "tests/catch.h"
#include "tests/policy/lease/table.h"

using namespace cuslice::lease;
using namespace cuslice::tests;

TEST_CASE("a job that is alone keeps the lease for as long as it likes") {
    Table table;
    const uint32_t one = table.add(30);
    table.wants(one);
    CHECK(table.open(one));
    table.after(10'000);
    CHECK(table.open(one));
    CHECK_FALSE(table.wanted(one));
}

TEST_CASE("a turn lasts as long as the job's share of the round, and the drain is charged to it") {
    Table table;
    const uint32_t small = table.add(30), large = table.add(70);
    table.wants(small);
    table.wants(large);
    // The first one was alone when its round began.
    CHECK(table.wanted(small));
    table.after(49);
    CHECK(table.open(small));
    table.after(1);
    CHECK_FALSE(table.open(small));
    CHECK_FALSE(table.open(large));
    table.wants(small);
    table.after(10);
    table.passes(small);
    CHECK(table.open(large));
    table.after(69);
    CHECK(table.open(large));
    table.after(1);
    CHECK_FALSE(table.open(large));
    table.wants(large);
    table.passes(large);
    // A new round gave it 30 ms, of which 10 are paid already.
    CHECK(table.open(small));
    CHECK(table.credit_ms(small) == 20);
}

TEST_CASE("what the members report is charged, and no more than the time that they had the GPU") {
    Table table;
    const uint32_t one = table.add(50), other = table.add(50);
    table.wants(one);
    table.wants(other);
    table.after(20);
    const uint64_t reported = GENERATE(5, 20, 1000);
    report(*table.state, one, 0, reported * kMillisecond);
    table.passes(one);
    CHECK(table.credit_ms(one) == 50 - static_cast<int64_t>(std::min<uint64_t>(reported, 20)));
    CHECK(table.job(one).claims[0].had == std::min<uint64_t>(reported, 20) * kMillisecond);
}

TEST_CASE("time that nobody else wanted costs a job no more than it had left") {
    Table table;
    const uint32_t one = table.add(50), other = table.add(50);
    table.wants(one);
    table.after(5'000);
    table.wants(other);
    CHECK_FALSE(table.open(one));  // it has had its turn
    table.passes(one);
    CHECK(table.open(other));
    CHECK(table.credit_ms(one) >= 0);
}

TEST_CASE("a holder that passes before its turn is over comes first when it is back, and shortens the next one's") {
    Table table;
    const uint32_t pauses = table.add(50), never_idle = table.add(50);
    table.wants(pauses);
    table.wants(never_idle);
    table.after(5);
    table.passes(pauses);
    CHECK(table.open(never_idle));
    table.after(4);
    table.wants(pauses);
    CHECK(table.open(never_idle));  // for a tenth of a quantum it is left alone
    table.after(1);
    CHECK_FALSE(table.open(never_idle));
    table.wants(never_idle);
    table.passes(never_idle);
    CHECK(table.open(pauses));
}

TEST_CASE("a pause saves nothing up") {
    Table table;
    const uint32_t pauses = table.add(50), one = table.add(50), other = table.add(50);
    for (int i = 0; i < 20; i++)
        for (const uint32_t member : {one, other}) {
            table.wants(member);
            table.after(50);
            table.passes(member);
        }
    CHECK(table.credit_ms(pauses) <= 50);
}

TEST_CASE("one lease is all the members' of a job, and ends with the last of them") {
    Table table;
    const uint32_t first = table.add(50), other = table.add(50);
    const uint32_t second = table.add_to(table.state->members[first].job);
    table.wants(first);
    CHECK_FALSE(table.open(second));
    table.wants(second);
    CHECK(table.open(second));
    table.wants(other);
    table.passes(first);
    CHECK_FALSE(table.open(other));
    table.passes(second);
    CHECK(table.open(other));
}

TEST_CASE("the leases of all GPUs that a job uses are taken together, or none") {
    Table table;
    const uint32_t zero = table.add(50, bit(0)), one = table.add(50, bit(1)), both = table.add(50, bit(0) | bit(1));
    table.wants(zero);
    table.after(10);
    table.wants(one);
    table.wants(both);
    CHECK(table.open(zero));
    CHECK(table.open(one));
    // The first turn is over, and the other isn't: neither is closed, as the GPU would stand idle.
    table.after(40);
    CHECK(table.open(zero));
    table.after(10);
    CHECK_FALSE(table.open(zero));
    CHECK_FALSE(table.open(one));
    table.passes(zero);
    CHECK_FALSE(table.open(both));
    table.passes(one);
    CHECK(table.open(both));
}

TEST_CASE("a GPU that is kept for a job of several is lent until that one can start") {
    Table table;
    const uint32_t zero = table.add(50, bit(0)), one = table.add(50, bit(1)), both = table.add(50, bit(0) | bit(1));
    table.wants(one);
    table.wants(zero);
    table.wants(both);
    table.passes(zero);
    CHECK_FALSE(table.open(both));
    table.wants(zero);
    CHECK(table.open(zero));
    table.after(50);
    CHECK_FALSE(table.open(zero));
    CHECK_FALSE(table.open(one));
}

TEST_CASE("a GPU that is kept is lent to who has time in the round that is due, and not to who has waited for longer") {
    Table table;
    const uint32_t first = table.add(50, bit(0) | bit(1)), next = table.add(50, bit(0) | bit(1));
    const uint32_t one = table.add(50, bit(1)), poor = table.add(50, bit(0)), other = table.add(50, bit(0));
    for (const uint32_t member : {first, one, poor, next, other}) {
        table.wants(member);
        table.after(1);
    }
    table.job(poor).claims[0].credit = -4 * static_cast<int64_t>(kQuantum);
    table.job(other).claims[0].credit = -1;
    table.after(50);
    table.passes(first);
    CHECK(table.open(one));
    CHECK_FALSE(table.open(next));  // both GPUs are kept for it
    CHECK_FALSE(table.open(poor));
    CHECK(table.open(other));
}

TEST_CASE("a job that comes to use one GPU more waits until it can have it with the others") {
    Table table;
    const uint32_t grows = table.add(50, bit(0)), other = table.add(50, bit(1));
    table.wants(grows);
    table.wants(other);
    set_share(*table.state, table.state->members[grows].job, 1, 50, kWhole, table.now);
    CHECK_FALSE(table.open(grows));
    table.wants(grows);
    table.passes(grows);
    table.after(50);
    table.passes(other);
    CHECK(table.open(grows));
    CHECK(table.job(grows).held == (bit(0) | bit(1)));
}

TEST_CASE("a job with a cap has breaks, also where nobody else wants the GPU") {
    Table table;
    const uint32_t capped = table.add(50, 1, 25);
    table.wants(capped);
    table.after(50);
    CHECK_FALSE(table.open(capped));
    table.wants(capped);
    table.passes(capped);
    CHECK_FALSE(table.open(capped));
    CHECK(next_event(*table.state, table.now, 1000 * kMillisecond) == table.now + 150 * kMillisecond);
    table.after(149);
    CHECK_FALSE(table.open(capped));
    table.after(1);
    CHECK(table.open(capped));
}

TEST_CASE("a job that is passed by has paid for its turn, and its late pass ends nobody's") {
    Table table;
    const uint32_t stuck = table.add(50), other = table.add(50);
    table.wants(stuck);
    table.wants(other);
    table.after(50);
    table.after(1000);
    pass_by(*table.state, table.state->members[stuck].job, table.now);
    CHECK(table.open(other));
    CHECK(table.credit_ms(stuck) <= -950);
    table.passes(stuck);
    CHECK(table.open(other));
}

TEST_CASE("a debt of many rounds is paid while others have theirs, without a loop for each") {
    Table table;
    const uint32_t poor = table.add(1), rich = table.add(100);
    table.wants(poor);
    table.wants(rich);
    table.job(poor).claims[0].credit = -int64_t{1} << 50;
    table.after(50);
    table.passes(poor);
    CHECK(table.open(rich));
    table.passes(rich);
    // Alone, it has time again at once.
    table.wants(poor);
    CHECK(table.open(poor));
}
