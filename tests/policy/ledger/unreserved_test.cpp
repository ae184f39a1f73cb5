// SPDX-License-Identifier: Apache-2.0
// Processes of groups and rules that are in no job: a refusal names them, and what can be had is as before.
#include "policy/ledger/unreserved.h"

#include <cstring>
#include <memory>
#include <string>

#include "policy/ledger/refusal.h"
#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/policy/ledger/place.h"
#include "tests/policy/ledger/steps.h"

using namespace cuslice::ledger;
using namespace cuslice::tests;

namespace {

// Step of a member of a group that holds memory without a reservation.
constexpr char kTake10Gib = 'r';

/// A file of accounts and members that were never joined.
struct Made {
    void account(uint32_t index, AccountKind kind) const {
        file->accounts[index].kind = kind;
        file->accounts[index].inner = kind != AccountKind::job;
        file->accounts[index].state.store(AccountState::open);
    }
    void member(uint32_t account, int32_t pid, int64_t held, uint64_t began = 1) const {
        const uint32_t number = file->header.members++;
        Member& member = file->members[number];
        member.account = account;
        member.pid = pid;
        member.start_time = began;
        member.state.store(MemberState::live);
        // A stripe may owe what another one has.
        file->stripes[number * kStripes].held.store(held + 100);
        file->stripes[number * kStripes + 1].held.store(-100);
    }
    std::unique_ptr<Committed> counted() const {
        auto committed = std::make_unique<Committed>();
        add_unreserved({file->accounts, members_of(*file)}, *file, 7, committed.get());
        return committed;
    }

    std::unique_ptr<File> file = std::make_unique<File>();
};

constexpr uint32_t kJob = 2, kGroup = 5, kOther = 6, kRule = 9;

Made made() {
    Made file;
    file.account(kJob, AccountKind::job);
    file.account(kGroup, AccountKind::group);
    file.account(kOther, AccountKind::group);
    file.account(kRule, AccountKind::rule);
    return file;
}

}  // namespace

TEST_CASE("a process of a group or a rule counts once, and not where it is in a job") {
    const Made file = made();
    file.member(kGroup, 800, 3000);
    file.member(kRule, 800, 3000);
    file.member(kRule, 801, 500);
    file.member(kGroup, 802, 0);
    file.member(kJob, 803, 40);
    file.member(kGroup, 803, 40);
    file.member(kRule, 803, 40);
    file.member(kGroup, 804, 70);
    file.member(kJob, 804, 70);
    const auto committed = file.counted();
    CHECK(committed->unreserved == 3500);
    REQUIRE(committed->count == 2);
    CHECK(committed->holders[0].pid == 800);
    CHECK(committed->holders[0].used == 3000);
    CHECK(committed->holders[0].reserved == 0);
    CHECK(committed->holders[0].user == 7);
    CHECK(committed->holders[1].pid == 801);
    CHECK(committed->used == 0);
    CHECK(committed->promised == 0);
}

TEST_CASE("a pid that another process had, or that shares a line of the table, is not taken for the same") {
    const Made file = made();
    file.member(kJob, 800, 40, 100);
    file.member(kGroup, 800, 3000, 200);
    file.member(kJob, 800 + 1024, 40);
    file.member(kGroup, 800 + 1024, 70);
    file.member(kGroup, 800 + 2048, 500);
    const auto committed = file.counted();
    CHECK(committed->unreserved == 3500);
    CHECK(committed->count == 2);
}

TEST_CASE("more of them than have names are counted") {
    const Made file = made();
    for (int i = 0; i < 70; i++)
        file.member(kGroup, 800 + i, 10);
    const auto committed = file.counted();
    CHECK(committed->unreserved == 700);
    CHECK(committed->count == Committed::kMax);
    CHECK(committed->left_out == 6);
}

TEST_CASE("a refusal names a group's process, and what is left is the same") {
    const LedgerFolder folder;
    Child holder([&, place = std::make_shared<Place>()](char step) {
        if (step == kTake10Gib)
            return place->membership.reserve(10 * kGiB, 0, nullptr) ? Answer::done : Answer::refused;
        if (!place->open(folder))
            return Answer::not_opened;
        Request request;
        request.kind = AccountKind::group;
        request.name = "lab";
        request.inner = true;
        return place->ledger.join(request, 0, &place->membership, &place->committed, &place->available,
                                  &place->failure) == Joined::yes
                   ? Answer::joined
                   : Answer::refused;
    });
    REQUIRE(holder.ask(Step::join) == Answer::joined);
    REQUIRE(holder.ask(kTake10Gib) == Answer::done);
    const auto refused = [&](unsigned user) {
        const auto place = std::make_unique<Place>();
        auto refusal = std::make_unique<Refusal>();
        if (user != 0 && seteuid(user) != 0)
            return std::string("can't be another user");
        if (!place->open(folder))
            return std::string(place->failure.text);
        refusal->asked = 8 * kGiB;
        refusal->in_use = 11 * kGiB;
        CHECK(place->join("job", 8 * kGiB, 8 * kGiB, AccountKind::job, 11 * kGiB) == Joined::refused);
        place->ledger.close();
        refusal->committed = place->committed;
        refusal->available = place->available;
        return std::string(describe_refusal(*refusal).view());
    };
    const std::string named = "8192.0 MiB requested, 5120.0 MiB left. Held: pid " + std::to_string(holder.pid()) + " (";
    const std::string own = refused(0);
    CHECK(own.find(named) == 0);
    CHECK(own.find(") 10.0 GiB for ") != std::string::npos);
    CHECK(own.find("; outside cuslice 1024.0 MiB. Try ") != std::string::npos);
    if (!can_be_other_users())
        return;
    // As another user reads it.
    std::filesystem::permissions(folder.path, std::filesystem::perms::all | std::filesystem::perms::sticky_bit);
    const std::string other = refused(1234);
    CHECK(seteuid(0) == 0);
    CHECK(other.find(named) == 0);
    CHECK(other.find("; outside cuslice 1024.0 MiB. Try ") != std::string::npos);
}
