// SPDX-License-Identifier: Apache-2.0
// Reservations by jobs of one user under a rule that shares its slice: on the GPU they count as no more than the
// slice. Each process is a child of this test.
#include "policy/ledger/ledger.h"
#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/policy/ledger/place.h"
#include "tests/policy/ledger/steps.h"

using namespace cuslice::ledger;
using namespace cuslice::tests;

namespace {

constexpr const char* kRule = "lab";
constexpr uint64_t kSlice = 8 * kGiB;

// Steps of a process under a rule, in the rule's account, beside those of steps.h.
struct RuleStep {
    static constexpr char join_rule = 'r';  // as a process that has used CUDA does
    static constexpr char reserve_5_gib = 't';
};

/// Reservation that a process makes for a job of its own, at Step::join.
struct Job {
    const char* name;
    uint64_t reserved;
    const char* rule = kRule;  // null: it is under none
    unsigned user = 0;
    uint64_t in_use = 0;
};

std::function<char(char)> process(const LedgerFolder& folder, const Job& job) {
    return [&folder, job, place = std::make_shared<Place>(), rule = std::make_shared<Membership>()](char step) -> char {
        Ledger& ledger = place->ledger;
        if (!ledger.opened()) {
            if (job.user != 0 &&
                (setresgid(job.user, job.user, job.user) != 0 || setresuid(job.user, job.user, job.user) != 0))
                return Answer::not_opened;
            if (!place->open(folder))
                return Answer::not_opened;
            if (job.rule)
                ledger.reserves_under(job.rule, kSlice);
        }
        switch (step) {
            case Step::join:
                return answer_of(place->join(job.name, job.reserved, job.reserved, AccountKind::job, job.in_use));
            case Step::read_available:
                if (!ledger.look(job.in_use, &place->committed, &place->available))
                    return Answer::not_opened;
                return gib(place->available / kGiB);
            case RuleStep::join_rule: {
                Request request;
                request.kind = AccountKind::rule;
                request.name = kRule;
                request.limit = kSlice;
                request.inner = true;
                return ledger.join(request, 0, rule.get(), &place->committed, &place->available, &place->failure) ==
                               Joined::yes
                           ? Answer::joined
                           : Answer::refused;
            }
            case RuleStep::reserve_5_gib:
                return rule->reserve(5 * kGiB, 0, nullptr) ? Answer::reserved : Answer::refused;
            default:
                return Answer::unknown;
        }
    };
}

unsigned members_of(const LedgerFolder& folder, AccountKind kind) {
    const Mapped mapped(folder);
    unsigned count = 0;
    for (uint32_t i = 0; i < mapped.file->header.members; i++) {
        const Member& member = mapped.file->members[i];
        if (member.state.load() != MemberState::live)
            continue;
        count += mapped.file->accounts[member.account].kind == kind;
    }
    return count;
}

}  // namespace

TEST_CASE("jobs of a rule count as no more than its slice, and others may have the rest") {
    const LedgerFolder folder;
    Child a(process(folder, {"a", 6 * kGiB})), b(process(folder, {"b", 6 * kGiB}));
    Child other(process(folder, {"other", 8 * kGiB, nullptr})), late(process(folder, {"late", kGiB, nullptr}));
    CHECK(a.ask(Step::join) == Answer::joined);
    CHECK(late.ask(Step::read_available) == gib(10));
    CHECK(b.ask(Step::join) == Answer::joined);
    CHECK(late.ask(Step::read_available) == gib(8));
    CHECK(other.ask(Step::join) == Answer::joined);
    CHECK(late.ask(Step::read_available) == gib(0));
    // The rule's slice is reserved already: its jobs still fit, and nobody else does.
    Child c(process(folder, {"c", 8 * kGiB}));
    CHECK(c.ask(Step::join) == Answer::joined);
    CHECK(late.ask(Step::join) == Answer::refused);
    // The slice is reserved as long as any of them needs it.
    a.kill();
    c.kill();
    CHECK(late.ask(Step::read_available) == gib(2));
    b.kill();
    CHECK(late.ask(Step::read_available) == gib(8));
}

TEST_CASE("a job of a rule is refused where what it adds to the others' is not left, and leaves nothing behind") {
    const LedgerFolder folder;
    Child a(process(folder, {"a", 6 * kGiB})), other(process(folder, {"other", 9 * kGiB, nullptr}));
    CHECK(a.ask(Step::join) == Answer::joined);
    CHECK(other.ask(Step::join) == Answer::joined);
    const unsigned before = members_of(folder, AccountKind::rule);
    CHECK(before == 1);
    Child b(process(folder, {"b", 2 * kGiB})), c(process(folder, {"c", kGiB})),
        stranger(process(folder, {"s", 2 * kGiB, nullptr}));
    CHECK(b.ask(Step::join) == Answer::refused);
    CHECK(b.ask(Step::read_available) == gib(1));
    CHECK(stranger.ask(Step::join) == Answer::refused);
    CHECK(members_of(folder, AccountKind::rule) == before);
    CHECK(members_of(folder, AccountKind::job) == 2);
    CHECK(c.ask(Step::join) == Answer::joined);
    CHECK(members_of(folder, AccountKind::rule) == 2);
}

TEST_CASE("jobs of two rules, and of none, count each by itself") {
    const LedgerFolder folder;
    Child a(process(folder, {"a", 6 * kGiB})), b(process(folder, {"b", 6 * kGiB, "another"}));
    Child c(process(folder, {"c", 6 * kGiB, nullptr})), d(process(folder, {"d", 6 * kGiB}));
    CHECK(a.ask(Step::join) == Answer::joined);
    CHECK(b.ask(Step::join) == Answer::joined);
    CHECK(c.ask(Step::join) == Answer::refused);
    CHECK(d.ask(Step::read_available) == gib(4));
    CHECK(d.ask(Step::join) == Answer::joined);  // 2 of them
    CHECK(d.ask(Step::read_available) == gib(2));
}

TEST_CASE("what a rule's processes hold in no job can't be had by its jobs, and doesn't count twice") {
    const LedgerFolder folder;
    Child bare(process(folder, {"", 0})), a(process(folder, {"a", 6 * kGiB}));
    CHECK(bare.ask(RuleStep::join_rule) == Answer::joined);
    CHECK(bare.ask(RuleStep::reserve_5_gib) == Answer::reserved);
    CHECK(a.ask(Step::join) == Answer::joined);
    // 5 are in use, and the job can take 3 more.
    Child other(process(folder, {"other", 9 * kGiB, nullptr, 0, 5 * kGiB}));
    CHECK(other.ask(Step::read_available) == gib(8));
    CHECK(other.ask(Step::join) == Answer::refused);
    bare.kill();
    Child later(process(folder, {"later", 9 * kGiB, nullptr}));
    CHECK(later.ask(Step::read_available) == gib(10));
}

TEST_CASE("a process that reserved under a rule has one place in it, whatever it does there") {
    const LedgerFolder folder;
    Child a(process(folder, {"a", 6 * kGiB})), b(process(folder, {"b", 6 * kGiB}));
    CHECK(a.ask(Step::join) == Answer::joined);
    CHECK(members_of(folder, AccountKind::rule) == 1);
    CHECK(a.ask(RuleStep::join_rule) == Answer::joined);
    CHECK(members_of(folder, AccountKind::rule) == 1);
    CHECK(a.ask(RuleStep::reserve_5_gib) == Answer::reserved);
    CHECK(b.ask(RuleStep::join_rule) == Answer::joined);
    CHECK(b.ask(Step::join) == Answer::joined);
    CHECK(members_of(folder, AccountKind::rule) == 2);
    CHECK(b.ask(RuleStep::reserve_5_gib) == Answer::refused);
    a.kill();
    CHECK(b.ask(Step::read_available) == gib(10));
    CHECK(b.ask(RuleStep::reserve_5_gib) == Answer::reserved);
}

TEST_CASE("what another user's jobs have reserved under a rule counts as no more than its slice") {
    if (!can_be_other_users())
        return;
    const LedgerFolder folder;
    std::filesystem::permissions(folder.path, std::filesystem::perms(01777));
    Child a(process(folder, {"a", 6 * kGiB, kRule, 60001})), b(process(folder, {"b", 6 * kGiB, kRule, 60001}));
    Child bob(process(folder, {"bob", 8 * kGiB, kRule, 60002}));
    CHECK(a.ask(Step::join) == Answer::joined);
    CHECK(b.ask(Step::join) == Answer::joined);
    CHECK(bob.ask(Step::read_available) == gib(8));
    CHECK(bob.ask(Step::join) == Answer::joined);  // a slice of the same rule of his own
    CHECK(bob.ask(Step::read_available) == gib(0));
}

TEST_CASE("who waits under a rule gets in as soon as what it adds is left") {
    const LedgerFolder folder;
    Child a(process(folder, {"a", 6 * kGiB})), other(process(folder, {"other", 10 * kGiB, nullptr}));
    CHECK(a.ask(Step::join) == Answer::joined);
    CHECK(other.ask(Step::join) == Answer::joined);
    Place waiter;
    REQUIRE(waiter.open(folder));
    waiter.ledger.reserves_under(kRule, kSlice);
    waiter.ledger.queue_up(6 * kGiB, "waiter");
    CHECK(waiter.join("w", 6 * kGiB, 6 * kGiB, AccountKind::job) == Joined::refused);
    other.kill();
    Child less(process(folder, {"less", 8 * kGiB, nullptr}));
    CHECK(waiter.join("w", 6 * kGiB, 6 * kGiB, AccountKind::job) == Joined::yes);
    CHECK(less.ask(Step::join) == Answer::joined);
}
