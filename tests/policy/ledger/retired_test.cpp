// SPDX-License-Identifier: Apache-2.0
// A ledger that has another one in its place: its totals and its members, from within.
#include "policy/ledger/own_file.h"
#include "policy/ledger/process_identity.h"
#include "policy/ledger/total.h"
#include "tests/catch.h"
#include "tests/policy/ledger/place.h"
#include "tests/policy/ledger/steps.h"

using namespace cuslice::ledger;
using namespace cuslice::tests;

TEST_CASE("nothing more can be had of a total that is retired, and what is given back is taken off") {
    Stamped total{};
    std::atomic<uint64_t> peak{0};
    static Stripe stripes[2];
    REQUIRE(change(total, &peak, stripes, 0, 100, 200));
    set_retired(total, true);
    CHECK(is_retired(total));
    uint64_t seen = 0;
    CHECK_FALSE(change(total, &peak, stripes, 1, 1, 200, &seen));
    CHECK(seen == 100);
    CHECK(change(total, &peak, stripes, 0, -40, 200));
    CHECK(stripes[0].held.load() == 60);
    CHECK(peak.load() == 100);  // without the mark
    CHECK(peak_of(total, peak) == 100);
    set_retired(total, false);
    CHECK(total.bytes == 60);
    CHECK(change(total, &peak, stripes, 1, 140, 200));
}

TEST_CASE("what a stripe holds can be told wherever its process stands in an operation") {
    Stamped total{};
    std::atomic<uint64_t> peak{0};
    static Stripe stripes[2];
    REQUIRE(change(total, &peak, stripes, 1, 100, 200));
    Stripe& stripe = stripes[1];
    CHECK(held_now(total, stripe, 1) == 100);
    // It has begun, and is not in the total yet.
    stripe.before.store(100);
    stripe.delta.store(-30);
    stripe.begun.store(2);
    CHECK(held_now(total, stripe, 1) == 100);
    // It is in the total, and not yet in the stripe.
    const uint64_t stamp = total.stamp + 1;
    total = {70, stamp};
    CHECK(held_now(total, stripe, 1) == 70);
    // And somebody has replaced its stamp since.
    note_replaced(stripes, stamp);
    total = {80, 7};
    CHECK(held_now(total, stripe, 1) == 70);
}

TEST_CASE("a program that another one has become begins with nothing, whatever was carried over") {
    const LedgerFolder folder;
    Child idle(member(folder));
    REQUIRE(idle.ask(Step::join) == Answer::joined);
    REQUIRE(idle.ask(Step::reserve_5_gib) == Answer::reserved);
    std::filesystem::remove(folder.file());
    Place place;
    REQUIRE(place.open(folder));
    REQUIRE(place.join("lab", 8 * kGiB) == Joined::yes);
    CHECK(place.membership.used() == 5 * kGiB);
    // Its entry, as it stands once the process has begun another program.
    const Mapped mapped(folder);
    File* const file = mapped.file;
    for (uint32_t i = 0; i < file->header.members; i++)
        if (is_carried(file->members[i].role)) {
            file->members[i].pid = getpid();
            file->members[i].start_time = this_process().start_time;
            file->members[i].image ^= 1;
            file->members[i].presence = 0;
        }
    place.ledger.take_back_dead();
    CHECK(place.membership.used() == 0);
}

TEST_CASE("a ledger that is there is nobody's to retire") {
    const LedgerFolder folder;
    Place place;
    REQUIRE(place.open(folder));
    REQUIRE(place.join("lab", 8 * kGiB) == Joined::yes);
    const Mapped mapped(folder);
    set_retired(mapped.file->accounts[0].total, true);
    CHECK(place.membership.retired());
    CHECK(place.membership.used() == 0);
    CHECK_FALSE(place.membership.reserve(kGiB, 0, nullptr));
    place.ledger.take_back_dead();
    CHECK(place.membership.reserve(kGiB, 0, nullptr));
    CHECK(place.membership.used() == kGiB);
}
