// SPDX-License-Identifier: Apache-2.0
// Members' gates: what they show of turns, of those who wait, and of other jobs on the same GPUs.
#include "policy/lease/gate.h"

#include "tests/catch.h"
#include "tests/policy/lease/table.h"

using namespace cuslice::lease;
using namespace cuslice::tests;

namespace {

uint64_t gate_of(const Table& table, uint32_t member) { return table.state->members[member].gate; }

}  // namespace

TEST_CASE("a job that is alone goes on at once, and looks further as soon as there is another one on its GPU") {
    Table table;
    const uint32_t one = table.add(50);
    table.wants(one);
    CHECK(goes_on_at_once(gate_of(table, one)));
    CHECK_FALSE(has_company(gate_of(table, one)));
    table.add(50);
    schedule(*table.state, table.now);
    CHECK(table.open(one));
    CHECK(has_company(gate_of(table, one)));
    CHECK_FALSE(goes_on_at_once(gate_of(table, one)));
    CHECK_FALSE(table.wanted(one));
}

TEST_CASE("a job on another GPU is no company, until one of the two comes to use the other's") {
    Table table;
    const uint32_t one = table.add(50, bit(0)), other = table.add(50, bit(1));
    table.wants(one);
    table.wants(other);
    CHECK(goes_on_at_once(gate_of(table, one)));
    CHECK(goes_on_at_once(gate_of(table, other)));
    set_share(*table.state, table.state->members[other].job, 0, 50, kWhole, table.now);
    schedule(*table.state, table.now);
    CHECK(has_company(gate_of(table, one)));
}

TEST_CASE("company goes with the other job's last process") {
    Table table;
    const uint32_t one = table.add(50), other = table.add(50);
    const uint32_t second = table.add_to(table.state->members[other].job);
    table.wants(one);
    REQUIRE(has_company(gate_of(table, one)));
    leave(*table.state, other, table.now);
    CHECK(has_company(gate_of(table, one)));
    leave(*table.state, second, table.now);
    CHECK(goes_on_at_once(gate_of(table, one)));
}

TEST_CASE("processes of one job are no company to each other") {
    Table table;
    const uint32_t one = table.add(50), second = table.add_to(table.state->members[one].job);
    table.wants(one);
    table.wants(second);
    CHECK(goes_on_at_once(gate_of(table, one)));
    CHECK(goes_on_at_once(gate_of(table, second)));
}

TEST_CASE("the gate of who has no turn shows nothing but that it is closed") {
    Table table;
    const uint32_t one = table.add(50), other = table.add(50);
    table.wants(one);
    table.wants(other);
    CHECK(table.wanted(one));
    CHECK((gate_of(table, other) & (kOpen | kWanted | kCompany | kLender)) == 0);
    table.after(50);
    CHECK((gate_of(table, one) & (kOpen | kWanted | kCompany | kLender)) == (kWanted | kCompany));
}

TEST_CASE("a job that pauses has lent the rest of its turn, and others learn of it until it has used that up") {
    Table table;
    const uint32_t one = table.add(50), other = table.add(50), elsewhere = table.add(50, bit(1));
    table.wants(elsewhere);
    table.wants(one);
    table.wants(other);
    CHECK_FALSE(has_lender(gate_of(table, one)));
    table.after(10);
    table.passes(one);
    REQUIRE(table.open(other));
    CHECK(has_lender(gate_of(table, other)));
    CHECK_FALSE(goes_on_at_once(gate_of(table, other)));
    CHECK_FALSE(has_lender(gate_of(table, elsewhere)));
    table.after(10);
    table.wants(one);
    CHECK(has_lender(gate_of(table, other)));
    table.passes(other);
    REQUIRE(table.open(one));
    table.wants(other);
    table.after(100);
    table.passes(one);
    REQUIRE(table.open(other));
    CHECK_FALSE(has_lender(gate_of(table, other)));
}

TEST_CASE("nobody keeps a queue short for a job whose pause is long") {
    Table table;
    const uint32_t one = table.add(50), other = table.add(50);
    table.wants(one);
    table.wants(other);
    table.passes(one);
    REQUIRE(table.open(other));
    table.after(499);
    CHECK(has_lender(gate_of(table, other)));
    table.after(1);
    CHECK_FALSE(has_lender(gate_of(table, other)));
    CHECK(has_company(gate_of(table, other)));
}

TEST_CASE("each change has a number of its own, and an older gate is never shown after a newer one") {
    Table table;
    const uint32_t one = table.add(50);
    const uint64_t first = gate_of(table, one);
    table.wants(one);
    const uint64_t second = gate_of(table, one);
    table.add(50);
    schedule(*table.state, table.now);
    const uint64_t third = gate_of(table, one);
    CHECK(first < second);
    CHECK(second < third);
    Gate gate{};
    CHECK(show_gate(gate, second));
    CHECK(show_gate(gate, third));
    CHECK_FALSE(show_gate(gate, third));
    CHECK_FALSE(show_gate(gate, second));
    CHECK(gate.word.load() == third);
}
