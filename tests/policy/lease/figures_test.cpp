// SPDX-License-Identifier: Apache-2.0
#include "policy/lease/figures.h"

#include "tests/catch.h"
#include "tests/policy/lease/table.h"

using namespace cuslice::tests;
using namespace cuslice::lease;

TEST_CASE("while two jobs want a GPU, what they have had adds up to the time that has passed, at any moment") {
    Table table;
    const uint32_t one = table.add(50), other = table.add(50);
    table.wants(one);
    table.wants(other);
    for (int moment = 1; moment <= 40; moment++) {
        table.after(10);
        for (const uint32_t member : {one, other})
            if (!table.open(member) && table.state->members[member].busy) {
                table.passes(member);
                table.wants(member);
            }
        const uint64_t passed = table.now - kStart;
        CHECK(had_until(table.job(0), 0, table.now) + had_until(table.job(1), 0, table.now) == passed);
        CHECK(waited_until(table.job(0), table.now) + waited_until(table.job(1), table.now) == passed);
    }
    CHECK(had_until(table.job(0), 0, table.now) > 0);
    CHECK(had_until(table.job(1), 0, table.now) > 0);
    CHECK(had_until(table.job(0), 1, table.now) == 0);
}

TEST_CASE("a job that idles has and waits no more") {
    Table table;
    const uint32_t one = table.add(50);
    table.wants(one);
    table.after(10);
    CHECK(had_until(table.job(0), 0, table.now) == 10 * kMillisecond);
    table.passes(one);
    table.after(10);
    CHECK(had_until(table.job(0), 0, table.now) == 10 * kMillisecond);
    CHECK(waited_until(table.job(0), table.now) == 0);
}
