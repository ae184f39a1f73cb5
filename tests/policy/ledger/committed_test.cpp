// SPDX-License-Identifier: Apache-2.0
// How an account counts among what is promised.
#include "policy/ledger/committed.h"

#include <cstring>
#include <memory>

#include "tests/catch.h"

using namespace cuslice::ledger;

namespace {

constexpr unsigned kUser = 1000;

struct Counted {
    Counted() {
        account->state.store(AccountState::open);
        account->reserved.store(600);
        account->total.bytes = 200;
        account->ticket = 50;
        member->pid = 812;
        memset(member->command, 'c', sizeof member->command);
    }
    bool add(bool waits = true) {
        undecided = false;
        return add_account(*account, kUser, *member, waits, committed.get(), &undecided);
    }
    std::unique_ptr<Account> account = std::make_unique<Account>();
    std::unique_ptr<Member> member = std::make_unique<Member>();
    std::unique_ptr<Committed> committed = std::make_unique<Committed>();
    bool undecided = false;
};

}  // namespace

TEST_CASE("an account is promised what it has reserved, or what it uses where that is more") {
    Counted counted;
    REQUIRE(counted.add());
    CHECK(counted.committed->promised == 600);
    CHECK(counted.committed->used == 200);
    counted.account->total.bytes = 700;
    REQUIRE(counted.add());
    CHECK(counted.committed->promised == 600 + 700);
    CHECK(counted.committed->used == 200 + 700);
}

TEST_CASE("a holder is named by the account's first member, whose command is bounded") {
    Counted counted;
    REQUIRE(counted.add());
    REQUIRE(counted.committed->count == 1);
    const Holder& holder = counted.committed->holders[0];
    CHECK(holder.user == kUser);
    CHECK(holder.pid == 812);
    CHECK(holder.reserved == 600);
    CHECK(holder.used == 200);
    CHECK(strlen(holder.command) == sizeof holder.command - 1);
}

TEST_CASE("holders that there is no room for count all the same") {
    Counted counted;
    for (unsigned i = 0; i < Committed::kMax + 2; i++)
        REQUIRE(counted.add());
    CHECK(counted.committed->count == Committed::kMax);
    CHECK(counted.committed->left_out == 2);
    CHECK(counted.committed->promised == 600 * (Committed::kMax + 2));
}

TEST_CASE("a claim that comes later is waited for, and one that comes before counts as granted") {
    Counted counted;
    counted.account->state.store(AccountState::claimed);
    counted.committed->queue.asks(40);
    CHECK_FALSE(counted.add());
    CHECK(counted.undecided);
    CHECK(counted.committed->promised == 0);
    CHECK(counted.add(false));  // it is taken for granted
    CHECK_FALSE(counted.undecided);
    CHECK(counted.committed->promised == 600);
    counted.committed->queue.asks(60);
    CHECK(counted.add());
    CHECK_FALSE(counted.undecided);
}
