// SPDX-License-Identifier: Apache-2.0
// The accounts that one process shares with others: all are charged, or none is.
#include "policy/budget/shared_budget.h"

#include "policy/budget/budget.h"
#include "policy/ledger/own_file.h"
#include "tests/catch.h"
#include "tests/policy/ledger/place.h"

namespace cuslice::tests {
namespace {

using ledger::AccountKind;
using ledger::Joined;

constexpr uint64_t kUnit = Budget::kUnit;

/// One process's accounts in a ledger of its own.
struct Accounts {
    Accounts() {
        ledger::LedgerError why;
        REQUIRE(ledger.open(folder.path.c_str(), kUuid, kCapacity, false, &why));
    }
    Joined join(SharedBudget& budget, AccountKind kind, const char* name, uint64_t limit, uint64_t reserved = 0) {
        ledger::Request request;
        request.kind = kind;
        request.name = name;
        request.limit = limit;
        request.reserved = reserved;
        auto committed = std::make_unique<ledger::Committed>();
        uint64_t available = 0;
        ledger::LedgerError why;
        return budget.join(ledger, request, 0, committed.get(), &available, &why);
    }
    /// The most that an account has held, by what the file says.
    uint64_t peak(AccountKind kind, const char* name) const {
        const Mapped mapped(folder);
        const ledger::Account* const account = ledger::find_account(*mapped.file, kind, name);
        REQUIRE(account);
        return ledger::peak_of(account->total, account->peak);
    }
    /// Bytes that an account holds, as any process can read them.
    uint64_t used(AccountKind kind, const char* name) {
        auto watched = std::make_unique<ledger::Watched>();
        REQUIRE(ledger.watch(kind, name, watched.get()));
        return watched->used;
    }
    uint64_t job(const char* name) { return used(AccountKind::job, name); }
    uint64_t group(const char* name) { return used(AccountKind::group, name); }

    LedgerFolder folder;
    ledger::Ledger ledger;
};

/// A job of 8 GiB with another one of 4 GiB in it, and a group of 2 GiB.
struct Nested : Accounts {
    Nested() {
        REQUIRE_FALSE(budget.joined());
        REQUIRE(join(budget, AccountKind::job, "outer", 8 * kGiB) == Joined::yes);
        REQUIRE(join(budget, AccountKind::job, "inner", 4 * kGiB) == Joined::yes);
        REQUIRE(join(budget, AccountKind::group, "lab", 2 * kGiB) == Joined::yes);
        REQUIRE(budget.joined());
    }
    bool holds(uint64_t bytes) { return job("outer") == bytes && job("inner") == bytes && group("lab") == bytes; }

    SharedBudget budget;
};

TEST_CASE("what the last account refuses is in none of those before it") {
    Nested nested;
    REQUIRE(nested.budget.reserve(kGiB, nullptr));
    CHECK(nested.holds(kGiB));
    for (int i = 0; i < 3; i++) {
        LimitError why;
        CHECK_FALSE(nested.budget.reserve(kGiB + kUnit, &why));
        CHECK(why.requested == kGiB + kUnit);
        CHECK(why.used == kGiB);
        CHECK(why.ceiling == 2 * kGiB);
        CHECK(why.limit == 2 * kGiB);
        CHECK(why.others == 0);
        CHECK(why.of == LimitOf::group);
        CHECK(nested.holds(kGiB));
    }
    CHECK(nested.budget.reserve(kGiB, nullptr));
    CHECK(nested.holds(2 * kGiB));
}

TEST_CASE("an account in the middle that refuses is the one that is named, and no account keeps anything") {
    Accounts all;
    SharedBudget budget;
    REQUIRE(all.join(budget, AccountKind::job, "outer", 8 * kGiB) == Joined::yes);
    REQUIRE(all.join(budget, AccountKind::job, "inner", kGiB) == Joined::yes);
    REQUIRE(all.join(budget, AccountKind::group, "lab", 4 * kGiB) == Joined::yes);
    LimitError why;
    CHECK_FALSE(budget.reserve(2 * kGiB, &why));
    CHECK(why.of == LimitOf::job);
    CHECK(why.limit == kGiB);
    CHECK_FALSE(budget.reserve(2 * kGiB, nullptr));
    CHECK(all.job("outer") == 0);
    CHECK(all.job("inner") == 0);
    CHECK(all.group("lab") == 0);
}

TEST_CASE("a fact is in every account, whatever their limits, and is given back in every one") {
    Nested nested;
    LimitError why;
    CHECK_FALSE(nested.budget.over(&why));
    nested.budget.change(static_cast<int64_t>(3 * kGiB));
    CHECK(nested.holds(3 * kGiB));
    REQUIRE(nested.budget.over(&why));
    CHECK(why.used == 3 * kGiB);
    CHECK(why.limit == 2 * kGiB);
    CHECK(why.of == LimitOf::group);
    CHECK_FALSE(nested.budget.reserve(kUnit, nullptr));
    CHECK(nested.budget.room() == 0);
    nested.budget.change(-static_cast<int64_t>(kGiB));
    CHECK(nested.holds(2 * kGiB));
    CHECK_FALSE(nested.budget.over(&why));
}

TEST_CASE("the smallest limit counts, and what is kept free of it can be had by nobody") {
    Nested nested;
    CHECK(nested.budget.limit() == 2 * kGiB);
    CHECK(nested.budget.room() == 2 * kGiB);
    nested.budget.set_margin(kGiB / 2);
    CHECK(nested.budget.limit() == 2 * kGiB);
    CHECK(nested.budget.room() == kGiB + kGiB / 2);
    LimitError why;
    CHECK_FALSE(nested.budget.reserve(kGiB + kGiB / 2 + kUnit, &why));
    CHECK(why.ceiling == kGiB + kGiB / 2);
    CHECK(nested.holds(0));
    CHECK(nested.budget.reserve(kGiB + kGiB / 2, nullptr));
    CHECK(nested.budget.room() == 0);
    nested.budget.set_margin(9 * kGiB);
    CHECK(nested.budget.room() == 0);
    CHECK_FALSE(nested.budget.reserve(kUnit, &why));
    CHECK(why.ceiling == 0);
    CHECK(nested.holds(kGiB + kGiB / 2));
}

TEST_CASE("a request that no counter can hold is refused, and changes no account") {
    Nested nested;
    for (const uint64_t huge : {~0ull, 1ull << 63, (1ull << 63) - 1}) {
        CAPTURE(huge);
        CHECK_FALSE(nested.budget.reserve(huge, nullptr));
        CHECK(nested.holds(0));
    }
}

/// A part of a GPU, whose accounts lie in those of the whole one.
struct Part : Accounts {
    explicit Part(AccountKind of_whole) {
        REQUIRE(join(whole, of_whole, "whole", 2 * kGiB) == Joined::yes);
        REQUIRE(join(part, AccountKind::job, "part", 3 * kGiB) == Joined::yes);
        part.lies_in(whole);
    }
    SharedBudget whole, part;
};

TEST_CASE("what the whole GPU refuses a part doesn't keep, and what the part refuses the whole isn't asked for") {
    const AccountKind kind = GENERATE(AccountKind::job, AccountKind::group);
    Part gpu(kind);
    REQUIRE(gpu.part.reserve(kGiB, nullptr));
    CHECK(gpu.job("part") == kGiB);
    CHECK(gpu.used(kind, "whole") == kGiB);
    LimitError why;
    CHECK_FALSE(gpu.part.reserve(kGiB + kUnit, &why));
    CHECK(why.of == (kind == AccountKind::job ? LimitOf::whole_gpu : LimitOf::group));
    CHECK(why.limit == 2 * kGiB);
    CHECK_FALSE(gpu.part.reserve(kGiB + kUnit, nullptr));
    CHECK(gpu.job("part") == kGiB);
    CHECK(gpu.used(kind, "whole") == kGiB);
    CHECK_FALSE(gpu.part.reserve(3 * kGiB, &why));
    CHECK(why.of == LimitOf::job);
    CHECK(why.limit == 3 * kGiB);
    CHECK(gpu.used(kind, "whole") == kGiB);
    CHECK(gpu.part.reserve(kGiB, nullptr));
}

TEST_CASE("a part's facts, limit and room are the whole GPU's too, whose margin is its own") {
    Part gpu(AccountKind::job);
    CHECK(gpu.part.limit() == 2 * kGiB);
    gpu.part.set_margin(kGiB / 2);
    CHECK(gpu.whole.room() == 2 * kGiB);
    CHECK(gpu.part.room() == 2 * kGiB);
    gpu.whole.set_margin(kGiB);
    CHECK(gpu.whole.room() == kGiB);
    CHECK(gpu.part.room() == kGiB);
    CHECK_FALSE(gpu.part.retired());
    gpu.part.change(static_cast<int64_t>(2 * kGiB + kUnit));
    CHECK(gpu.job("whole") == 2 * kGiB + kUnit);
    LimitError why;
    REQUIRE(gpu.part.over(&why));
    CHECK(why.of == LimitOf::whole_gpu);
    CHECK(why.limit == 2 * kGiB);
    gpu.part.change(-static_cast<int64_t>(kUnit));
    CHECK_FALSE(gpu.part.over(&why));
    CHECK(gpu.job("whole") == 2 * kGiB);
}

TEST_CASE("one account whose ledger has another one in its place is enough, be it the whole GPU's") {
    const auto retire = [](Accounts& all, AccountKind kind, const char* name, bool retired) {
        const Mapped mapped(all.folder);
        ledger::Account* const account = ledger::find_account(*mapped.file, kind, name);
        REQUIRE(account);
        ledger::set_retired(account->total, retired);
    };
    Nested nested;
    CHECK_FALSE(nested.budget.retired());
    for (const char* name : {"outer", "inner", "lab"}) {
        CAPTURE(name);
        const AccountKind kind = *name == 'l' ? AccountKind::group : AccountKind::job;
        retire(nested, kind, name, true);
        CHECK(nested.budget.retired());
        retire(nested, kind, name, false);
        CHECK_FALSE(nested.budget.retired());
    }
    Part gpu(AccountKind::job);
    CHECK_FALSE(gpu.part.retired());
    retire(gpu, AccountKind::job, "whole", true);
    CHECK(gpu.part.retired());
}

TEST_CASE("what came to nothing is in no account's peak: refused by another account, or by the driver") {
    Nested nested;
    const auto peaks = [&](uint64_t bytes) {
        for (const char* job : {"outer", "inner"})
            if (nested.peak(AccountKind::job, job) != bytes)
                return false;
        return nested.peak(AccountKind::group, "lab") == bytes;
    };
    Budget budget;
    budget.share(nested.budget);
    REQUIRE(budget.reserve(kGiB));
    budget.commit();
    CHECK(peaks(kGiB));
    // The jobs had room for it, and only the group did not.
    CHECK_FALSE(budget.reserve(kGiB + kUnit));
    CHECK(nested.holds(kGiB));
    CHECK(peaks(kGiB));
    REQUIRE(budget.reserve(kGiB));
    budget.roll_back(kGiB);
    CHECK(nested.holds(kGiB));
    CHECK(peaks(kGiB));
    budget.release(kGiB);
    CHECK(nested.holds(0));
    CHECK(peaks(kGiB));
    // Memory counts towards the peaks even if it is freed later.
    REQUIRE(budget.reserve(2 * kGiB));
    budget.commit();
    budget.release(2 * kGiB);
    CHECK(peaks(2 * kGiB));
    // Memory that is charged as a fact counts as well.
    budget.adjust(0, 3 * kGiB);
    budget.adjust(3 * kGiB, kGiB);
    CHECK(nested.holds(kGiB));
    CHECK(peaks(3 * kGiB));
}

TEST_CASE("a part's reservation that the whole GPU refuses is not in the part's peak") {
    Part gpu(AccountKind::job);
    LimitError why;
    REQUIRE(gpu.part.reserve(kGiB, &why));
    const uint64_t room = gpu.part.room();
    CHECK_FALSE(gpu.part.reserve(2 * kGiB, &why));
    CHECK(gpu.part.room() == room);
    CHECK(gpu.peak(AccountKind::job, "part") == kGiB);
    CHECK(gpu.peak(AccountKind::job, "whole") == kGiB);
    gpu.part.undo(kGiB);
    CHECK(gpu.peak(AccountKind::job, "part") == 0);
    CHECK(gpu.peak(AccountKind::job, "whole") == 0);
}

TEST_CASE("what the accounts refuse is not in the process's own budget, nor in flight") {
    Nested nested;
    Budget budget;
    REQUIRE(budget.reserve(kGiB));
    budget.commit();
    budget.share(nested.budget);
    CHECK(nested.holds(kGiB));  // what was charged already
    LimitError why;
    CHECK_FALSE(budget.reserve(kGiB + 1, &why));
    CHECK(why.requested == kGiB + 1);
    CHECK(budget.used() == kGiB);
    CHECK(budget.settled(budget.snapshot()));
    CHECK(nested.holds(kGiB));
    budget.set_ceiling(kGiB + kUnit);
    CHECK_FALSE(budget.reserve(2 * kUnit));
    CHECK(nested.holds(kGiB));
    REQUIRE(budget.reserve(kUnit));
    budget.roll_back(kUnit);
    CHECK(nested.holds(kGiB));
    budget.release(kGiB);
    CHECK(nested.holds(0));
}

TEST_CASE("memory is asked of the others only where something is missing, and only if they could give it") {
    Nested nested;
    uint64_t state = 1;
    CHECK_FALSE(nested.budget.want(kGiB, &state));  // there is room
    CHECK(state == 0);
    REQUIRE(nested.budget.reserve(2 * kGiB, nullptr));
    const uint32_t before = nested.budget.wanted();
    nested.budget.caches(kGiB);                     // this process's own cache is none of the others'
    CHECK_FALSE(nested.budget.want(kGiB, &state));  // nobody else is there
    CHECK_FALSE(nested.budget.want(3 * kGiB, &state));
    CHECK(nested.budget.wanted() == before);
}

TEST_CASE("what a part could give back is what others ask for in the whole GPU's accounts, too") {
    Part gpu(AccountKind::job);
    const Mapped mapped(gpu.folder);
    gpu.part.caches(3 << 20);
    REQUIRE(mapped.file->header.members == 2);
    for (unsigned i = 0; i < 2; i++)
        CHECK(mapped.file->members[i].caches.load() == 1 + 3);
    const uint32_t before = gpu.part.wanted();
    ledger::find_account(*mapped.file, AccountKind::job, "whole")->wanted++;
    CHECK(gpu.part.wanted() == before + 1);
    ledger::find_account(*mapped.file, AccountKind::job, "part")->wanted++;
    CHECK(gpu.part.wanted() == before + 2);
}

TEST_CASE("others are asked for what is missing in each account, if they keep as much") {
    Part gpu(AccountKind::group);
    REQUIRE(gpu.whole.limit() == 2 * kGiB);
    Place other;
    REQUIRE(other.open(gpu.folder));
    REQUIRE(other.join("whole", 2 * kGiB) == Joined::yes);
    REQUIRE(other.membership.reserve(kGiB, 0, nullptr));
    uint64_t state = 7;
    CHECK_FALSE(gpu.part.want(kGiB + kGiB / 2, &state));  // it keeps nothing
    CHECK(other.membership.wanted() == 0);
    other.membership.caches(kGiB);
    CHECK_FALSE(gpu.part.want(kGiB, &state));  // there is room
    CHECK(state == 0);
    CHECK(gpu.part.want(kGiB + kGiB / 2, &state));
    CHECK(state != 0);
    CHECK(other.membership.wanted() == 1);
    CHECK(gpu.part.wanted() == 1);
    gpu.whole.set_margin(kGiB / 2);
    CHECK(gpu.part.want(kGiB, &state));
    CHECK(other.membership.wanted() == 2);
    CHECK_FALSE(gpu.part.want(2 * kGiB, &state));  // with the margin it would be more than they keep
    CHECK_FALSE(gpu.part.want(2 * kGiB + kUnit, &state));
    CHECK(other.membership.wanted() == 2);
    other.ledger.close();
}

TEST_CASE("there are as many accounts as there is room for, and a refused one is none") {
    Accounts all;
    SharedBudget budget;
    CHECK(all.join(budget, AccountKind::job, "huge", 2 * kCapacity, 2 * kCapacity) == Joined::refused);
    CHECK_FALSE(budget.joined());
    for (unsigned i = 0; i < SharedBudget::kMax; i++)
        REQUIRE(all.join(budget, AccountKind::job, ("job" + std::to_string(i)).c_str(), kGiB) == Joined::yes);
    CHECK(all.join(budget, AccountKind::job, "one more", kGiB) == Joined::unavailable);
    CHECK(budget.reserve(kGiB, nullptr));
    budget.forget();
    CHECK_FALSE(budget.joined());
    CHECK(budget.limit() == ledger::kNoLimitBytes);
    CHECK(budget.reserve(16 * kGiB, nullptr));
}

}  // namespace
}  // namespace cuslice::tests
