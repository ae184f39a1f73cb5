// SPDX-License-Identifier: Apache-2.0
// A file's accounts and members as one process keeps them: its own places, and what it takes back of the dead.
#include "policy/ledger/roster.h"

#include <cstring>

#include "policy/ledger/locked.h"
#include "policy/ledger/own_places.h"
#include "tests/catch.h"
#include "tests/policy/ledger/place.h"

using namespace cuslice::ledger;
using namespace cuslice::tests;

namespace {

// A ledger without the ways in and out of it.
struct Kept {
    explicit Kept(const LedgerFolder& folder) {
        REQUIRE(file.open(folder.path.c_str(), kUuid, kCapacity, false, nullptr));
    }
    ~Kept() {
        const cuslice::DisablingLockGuard guard(file.mutex());
        roster.close();
    }
    Account* open(AccountKind kind, const char* name) {
        Account* const account = roster.make_account(kind);
        REQUIRE(account);
        Terms terms{kind, false, {}, kGiB, kGiB};
        strncpy(terms.name, name, sizeof terms.name - 1);
        set_terms(account, terms);
        account->state.store(AccountState::open);
        return account;
    }
    OwnPlace* join(const Account* account) {
        OwnPlace* const place = roster.places().take(file, roster.index_of(account), Joiner("train"), nullptr);
        if (place)
            member(*place).state.store(MemberState::live);
        return place;
    }
    Member& member(const OwnPlace& place) { return file.contents().members[place.number]; }

    Roster roster;
    LedgerFile& file = roster.file;
};

}  // namespace

TEST_CASE("a place says whose it is, and its account has members until it is dropped") {
    const LedgerFolder folder;
    Kept kept(folder);
    const Locked locked(kept.roster, Deadline(Locked::kPatience));
    REQUIRE(locked);
    Account* const account = kept.open(AccountKind::job, "one");
    CHECK_FALSE(kept.roster.has_members(account));
    CHECK_FALSE(kept.roster.has_members(nullptr));
    OwnPlace* const place = kept.join(account);
    REQUIRE(place);
    const Member& member = kept.member(*place);
    CHECK(member.pid == getpid());
    CHECK(member.presence.load() == kept.file.folder().presence().id());
    CHECK(strcmp(member.command, "train") == 0);
    CHECK(kept.roster.has_members(account));
    CHECK(kept.roster.places().has_any_in(kept.file, kept.roster.index_of(account)));
    CHECK(kept.roster.find(AccountKind::job, "one") == account);
    kept.roster.places().drop(kept.file, place);
    CHECK_FALSE(kept.roster.has_members(account));
    CHECK_FALSE(kept.roster.places().any());
}

TEST_CASE("a process has so many places, and no more") {
    const LedgerFolder folder;
    Kept kept(folder);
    const Locked locked(kept.roster, Deadline(Locked::kPatience));
    REQUIRE(locked);
    const Account* const account = kept.open(AccountKind::job, "one");
    for (unsigned i = 0; i < OwnPlaces::kMost; i++)
        REQUIRE(kept.join(account));
    CHECK_FALSE(kept.join(account));
    kept.roster.places().drop(kept.file, kMembers);  // nobody's
    CHECK_FALSE(kept.join(account));
    kept.roster.places().drop(kept.file, 3);
    CHECK(kept.join(account));
}

TEST_CASE("the dead are taken back, this process's own places are not") {
    const LedgerFolder folder;
    Kept kept(folder);
    const Locked locked(kept.roster, Deadline(Locked::kPatience));
    REQUIRE(locked);
    const Account* const account = kept.open(AccountKind::job, "one");
    const OwnPlace* const own = kept.join(account);
    REQUIRE(own);
    CHECK_FALSE(kept.roster.take_back_dead());
    Account* const left = kept.open(AccountKind::job, "left");
    uint64_t presence = 0;
    {
        Living other(folder);
        presence = other.presence.id();
        const OwnPlace* const made = kept.join(left);
        REQUIRE(made);
        Member& theirs = kept.member(*made);
        OwnPlace places[OwnPlaces::kMost];
        REQUIRE(kept.roster.places().take_out(places) == 2);
        theirs.presence.store(presence);
        CHECK_FALSE(kept.roster.take_back_dead());
    }
    CHECK(kept.roster.take_back_dead());
    CHECK(left->state.load() == AccountState::free);
    CHECK(account->state.load() == AccountState::open);
    CHECK(life_of(kept.file.folder().where(), presence) == Life::missing);
    CHECK_FALSE(kept.roster.take_back_dead());
}

TEST_CASE("a removed file's places are found in the one that takes its place, by who locks it next") {
    const LedgerFolder folder;
    Kept kept(folder);
    uint64_t id = 0;
    {
        const Locked locked(kept.roster, Deadline(Locked::kPatience));
        REQUIRE(locked);
        id = kept.file.contents().header.id;
        kept.roster.ticket().wait_for(kGiB, "train");
        kept.roster.take_ticket();
    }
    REQUIRE(unlink(folder.file().c_str()) == 0);
    const Locked locked(kept.roster, Deadline(Locked::kPatience));
    REQUIRE(locked);
    CHECK(kept.file.contents().header.id != id);
    CHECK(kept.file.contents().header.unfinished == 0);
    CHECK(kept.file.state() == State::whole);
    CHECK(kept.roster.ticket().placed());
}
