// SPDX-License-Identifier: Apache-2.0
// A file's accounts: which one is found, which one a new name gets, and what it is made with.
#include "policy/ledger/accounts.h"

#include <cstring>
#include <memory>
#include <string>

#include "tests/catch.h"

using namespace cuslice::ledger;

namespace {

struct Made {
    Account& open(uint32_t index, AccountKind kind, const std::string& name) const {
        Account& account = file->accounts[index];
        account.kind = kind;
        strncpy(account.name, name.c_str(), sizeof account.name);
        account.state.store(AccountState::open);
        return account;
    }
    void join(uint32_t number, uint32_t account) const {
        file->members[number].account = account;
        file->members[number].state.store(MemberState::live);
        file->header.members = std::max(file->header.members, number + 1);
    }
    uint32_t index_of(const Account* account) const {
        return account ? static_cast<uint32_t>(account - file->accounts) : kAccounts;
    }
    uint32_t for_new(AccountKind kind) const { return index_of(new_account(*file, kind)); }

    std::unique_ptr<File> file = std::make_unique<File>();
};

}  // namespace

TEST_CASE("an account is found by its kind and its whole name, unless it is free") {
    const Made made;
    const std::string longest(sizeof Account::name, 'n');
    made.open(3, AccountKind::job, "lab");
    made.open(5, AccountKind::group, "lab");
    made.open(9, AccountKind::group, longest);
    const auto found = [&](AccountKind kind, const std::string& name) {
        return made.index_of(find_account(*made.file, kind, name.c_str()));
    };
    CHECK(found(AccountKind::job, "lab") == 3);
    CHECK(found(AccountKind::group, "lab") == 5);
    CHECK(found(AccountKind::group, "la") == kAccounts);
    CHECK(found(AccountKind::group, "labs") == kAccounts);
    CHECK(found(AccountKind::group, longest) == 9);
    made.file->accounts[5].state.store(AccountState::free);
    CHECK(found(AccountKind::group, "lab") == kAccounts);
    made.file->accounts[3].state.store(AccountState::claimed);
    CHECK(found(AccountKind::job, "lab") == 3);
}

TEST_CASE("an account has members as long as one lives in it, whatever the file says of how many there are") {
    const Made made;
    made.join(0, 1);
    made.join(4, 2);
    CHECK_FALSE(has_members(*made.file, 0));
    CHECK(has_members(*made.file, 1));
    CHECK(has_members(*made.file, 2));
    made.file->members[0].state.store(MemberState::free);
    CHECK_FALSE(has_members(*made.file, 1));
    made.file->header.members = 4;  // the other one is none yet
    CHECK_FALSE(has_members(*made.file, 2));
    made.file->header.members = ~0u;
    CHECK(has_members(*made.file, 2));
    CHECK_FALSE(has_members(*made.file, 3));
}

TEST_CASE("a new name gets the first account that is free") {
    const Made made;
    CHECK(made.for_new(AccountKind::job) == 0);
    for (const uint32_t taken : {0u, 1u, 3u})
        made.open(taken, AccountKind::group, "g" + std::to_string(taken));
    made.file->accounts[0].left = 7;  // is left alone while another one is free
    CHECK(made.for_new(AccountKind::group) == 2);
    CHECK(made.for_new(AccountKind::job) == 2);
    CHECK(made.file->accounts[0].state.load() == AccountState::open);
}

TEST_CASE("of the accounts that are free, a new name gets the one that ended first") {
    const Made made;
    for (uint32_t i = 0; i < kAccounts; i++)
        made.file->accounts[i].left = 1000 + i;
    for (const uint32_t one : {100u, 7u, 30u})
        made.file->accounts[one].left = one;
    for (const uint32_t next : {7u, 30u, 100u, 0u}) {
        CHECK(made.for_new(AccountKind::job) == next);
        made.open(next, AccountKind::job, "j" + std::to_string(next));
    }
}

TEST_CASE("groups leave some accounts to jobs, and those without members make room, the one that was left first") {
    const Made made;
    for (uint32_t i = 0; i < kMaxGroups - 1; i++) {
        made.open(i, AccountKind::group, "g" + std::to_string(i));
        made.join(i, i);
    }
    CHECK(made.for_new(AccountKind::group) == kMaxGroups - 1);
    made.open(kMaxGroups - 1, AccountKind::group, "last");
    made.join(kMaxGroups - 1, kMaxGroups - 1);
    CHECK(made.for_new(AccountKind::group) == kAccounts);
    CHECK(made.for_new(AccountKind::job) == kMaxGroups);

    Account* const accounts = made.file->accounts;
    accounts[10].left = 1;  // but somebody is in it
    made.file->members[20].state.store(MemberState::free);
    CHECK(made.for_new(AccountKind::group) == kAccounts);  // nobody has missed its members yet
    for (const uint32_t one : {20u, 30u, 40u}) {
        made.file->members[one].state.store(MemberState::free);
        accounts[one].left = one == 30 ? 50 : 100 + one;
    }
    for (const uint32_t next : {30u, 20u, 40u}) {
        CHECK(made.for_new(AccountKind::group) == next);
        CHECK(accounts[next].state.load() == AccountState::free);
        made.open(next, AccountKind::group, "again");
        made.join(next, next);
    }
    CHECK(made.for_new(AccountKind::group) == kAccounts);
}

TEST_CASE("where all accounts are taken a job has that of a group that nobody is in, and no other job's") {
    const Made made;
    for (uint32_t i = 0; i < kAccounts; i++)
        made.open(i, AccountKind::job, "j" + std::to_string(i)).left = 1;
    CHECK(made.for_new(AccountKind::job) == kAccounts);
    made.file->accounts[77].kind = AccountKind::group;
    CHECK(made.for_new(AccountKind::job) == 77);
}

TEST_CASE("an account is made with its terms, and one that is known keeps what its next member doesn't say") {
    const Made made;
    Account& account = made.file->accounts[2];
    account.total = {5000, 42};
    account.peak = 6000;
    account.left = 9;
    Terms terms{AccountKind::group, false, "lab", 800, 300};
    set_terms(&account, terms);
    CHECK(account.kind == AccountKind::group);
    CHECK(std::string(account.name) == "lab");
    CHECK(account.inner == 0);
    CHECK(account.limit.load() == 800);
    CHECK(account.reserved.load() == 300);
    CHECK(account.left == 0);
    CHECK(account.total.bytes == 0);
    CHECK(account.total.stamp == 42);  // some stripe's
    CHECK(account.peak.load() == 0);
    CHECK(account.state.load() == AccountState::claimed);

    account.state.store(AccountState::open);
    account.total = {70, 43};
    account.peak = 80;
    account.left = 9;
    terms.limit = kNoLimitBytes;
    terms.reserved = 100;
    set_terms(&account, terms);
    CHECK(account.limit.load() == 800);
    CHECK(account.reserved.load() == 100);
    CHECK(account.left == 0);
    CHECK(account.total.bytes == 70);
    CHECK(account.peak.load() == 0);  // of those who come now
    CHECK(account.state.load() == AccountState::claimed);
    terms.limit = 900;
    set_terms(&account, terms);
    CHECK(account.limit.load() == 900);
    // An account inside another one reserves nothing of its own.
    Account& inner = made.file->accounts[3];
    set_terms(&inner, {AccountKind::job, true, "inner", kNoLimitBytes, 300});
    CHECK(inner.inner == 1);
    CHECK(inner.reserved.load() == 0);
    CHECK(inner.limit.load() == kNoLimitBytes);
}
