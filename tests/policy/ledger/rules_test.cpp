// Reservations by jobs of one user under a rule that shares its slice: on the GPU they count as no more than the
// slice. Each process is a child of this test.
#include "policy/ledger/ledger.h"
#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/policy/ledger/place.h"

using namespace cuslice::ledger;
using namespace cuslice::tests;

namespace {

constexpr const char* kRule = "lab";
constexpr std::uint64_t kSlice = 8 * kGiB;

/// Reservation that a process makes for a job of its own. The process obeys letters. j: makes it; l: tells how much is
/// left, in GiB; r: joins the rule's account as well, as a process that has used CUDA does; t: takes 5 GiB of it.
struct Job {
    const char* name;
    std::uint64_t reserved;
    const char* rule = kRule;  // null: it is under none
    unsigned user = 0;
    std::uint64_t in_use = 0;
};

std::function<char(char)> process(const LedgerFolder& folder, const Job& job) {
    return [&folder, job, place = std::make_shared<Place>(),
            rule = std::make_shared<Membership>()](char letter) -> char {
        Ledger& ledger = place->ledger;
        if (!ledger.opened()) {
            if (job.user != 0 &&
                (setresgid(job.user, job.user, job.user) != 0 || setresuid(job.user, job.user, job.user) != 0))
                return 'x';
            if (!place->open(folder)) return 'x';
            if (job.rule) ledger.reserves_under(job.rule, kSlice);
        }
        switch (letter) {
            case 'j': {
                const Joined joined = place->join(job.name, job.reserved, job.reserved, AccountKind::job, job.in_use);
                return joined == Joined::yes ? 'y' : joined == Joined::refused ? 'n' : 'u';
            }
            case 'l':
                if (!ledger.look(job.in_use, &place->committed, &place->available)) return 'x';
                return static_cast<char>('0' + place->available / kGiB);
            case 'r': {
                Request request;
                request.kind = AccountKind::rule;
                request.name = kRule;
                request.limit = kSlice;
                request.inner = true;
                return ledger.join(request, 0, rule.get(), &place->committed, &place->available, &place->failure) ==
                               Joined::yes
                           ? 'y'
                           : 'n';
            }
            case 't':
                return rule->reserve(5 * kGiB, 0, nullptr) ? 'y' : 'n';
            default:
                return '?';
        }
    };
}

unsigned members_of(const LedgerFolder& folder, AccountKind kind) {
    const Mapped mapped(folder);
    unsigned count = 0;
    for (std::uint32_t i = 0; i < mapped.file->header.members; i++) {
        const Member& member = mapped.file->members[i];
        if (member.state.load() != MemberState::live) continue;
        count += mapped.file->accounts[member.account].kind == kind;
    }
    return count;
}

char digit(std::uint64_t count) { return static_cast<char>('0' + count); }

}  // namespace

TEST_CASE("jobs of a rule count as no more than its slice, and others may have the rest") {
    const LedgerFolder folder;
    Child a(process(folder, {"a", 6 * kGiB})), b(process(folder, {"b", 6 * kGiB}));
    Child other(process(folder, {"other", 8 * kGiB, nullptr})), late(process(folder, {"late", kGiB, nullptr}));
    CHECK(a.ask('j') == 'y');
    CHECK(late.ask('l') == digit(10));
    CHECK(b.ask('j') == 'y');
    CHECK(late.ask('l') == digit(8));
    CHECK(other.ask('j') == 'y');
    CHECK(late.ask('l') == digit(0));
    // The rule's slice is reserved already: its jobs still fit, and nobody else does.
    Child c(process(folder, {"c", 8 * kGiB}));
    CHECK(c.ask('j') == 'y');
    CHECK(late.ask('j') == 'n');
    // The slice is reserved as long as any of them needs it.
    a.kill();
    c.kill();
    CHECK(late.ask('l') == digit(2));
    b.kill();
    CHECK(late.ask('l') == digit(8));
}

TEST_CASE("a job of a rule is refused where what it adds to the others' is not left, and leaves nothing behind") {
    const LedgerFolder folder;
    Child a(process(folder, {"a", 6 * kGiB})), other(process(folder, {"other", 9 * kGiB, nullptr}));
    CHECK(a.ask('j') == 'y');
    CHECK(other.ask('j') == 'y');
    const unsigned before = members_of(folder, AccountKind::rule);
    CHECK(before == 1);
    Child b(process(folder, {"b", 2 * kGiB})), c(process(folder, {"c", kGiB})),
        stranger(process(folder, {"s", 2 * kGiB, nullptr}));
    CHECK(b.ask('j') == 'n');
    CHECK(b.ask('l') == digit(1));
    CHECK(stranger.ask('j') == 'n');
    CHECK(members_of(folder, AccountKind::rule) == before);
    CHECK(members_of(folder, AccountKind::job) == 2);
    CHECK(c.ask('j') == 'y');
    CHECK(members_of(folder, AccountKind::rule) == 2);
}

TEST_CASE("jobs of two rules, and of none, count each by itself") {
    const LedgerFolder folder;
    Child a(process(folder, {"a", 6 * kGiB})), b(process(folder, {"b", 6 * kGiB, "another"}));
    Child c(process(folder, {"c", 6 * kGiB, nullptr})), d(process(folder, {"d", 6 * kGiB}));
    CHECK(a.ask('j') == 'y');
    CHECK(b.ask('j') == 'y');
    CHECK(c.ask('j') == 'n');
    CHECK(d.ask('l') == digit(4));
    CHECK(d.ask('j') == 'y');  // 2 of them
    CHECK(d.ask('l') == digit(2));
}

TEST_CASE("what a rule's processes hold in no job can't be had by its jobs, and doesn't count twice") {
    const LedgerFolder folder;
    Child bare(process(folder, {"", 0})), a(process(folder, {"a", 6 * kGiB}));
    CHECK(bare.ask('r') == 'y');
    CHECK(bare.ask('t') == 'y');
    CHECK(a.ask('j') == 'y');
    // 5 are in use, and the job can take 3 more.
    Child other(process(folder, {"other", 9 * kGiB, nullptr, 0, 5 * kGiB}));
    CHECK(other.ask('l') == digit(8));
    CHECK(other.ask('j') == 'n');
    bare.kill();
    Child later(process(folder, {"later", 9 * kGiB, nullptr}));
    CHECK(later.ask('l') == digit(10));
}

TEST_CASE("a process that reserved under a rule has one place in it, whatever it does there") {
    const LedgerFolder folder;
    Child a(process(folder, {"a", 6 * kGiB})), b(process(folder, {"b", 6 * kGiB}));
    CHECK(a.ask('j') == 'y');
    CHECK(members_of(folder, AccountKind::rule) == 1);
    CHECK(a.ask('r') == 'y');
    CHECK(members_of(folder, AccountKind::rule) == 1);
    CHECK(a.ask('t') == 'y');
    CHECK(b.ask('r') == 'y');
    CHECK(b.ask('j') == 'y');
    CHECK(members_of(folder, AccountKind::rule) == 2);
    CHECK(b.ask('t') == 'n');
    a.kill();
    CHECK(b.ask('l') == digit(10));
    CHECK(b.ask('t') == 'y');
}

TEST_CASE("what another user's jobs have reserved under a rule counts as no more than its slice") {
    if (!can_be_other_users()) return;
    const LedgerFolder folder;
    std::filesystem::permissions(folder.path, std::filesystem::perms(01777));
    Child a(process(folder, {"a", 6 * kGiB, kRule, 60001})), b(process(folder, {"b", 6 * kGiB, kRule, 60001}));
    Child bob(process(folder, {"bob", 8 * kGiB, kRule, 60002}));
    CHECK(a.ask('j') == 'y');
    CHECK(b.ask('j') == 'y');
    CHECK(bob.ask('l') == digit(8));
    CHECK(bob.ask('j') == 'y');  // a slice of the same rule of his own
    CHECK(bob.ask('l') == digit(0));
}

TEST_CASE("who waits under a rule gets in as soon as what it adds is left") {
    const LedgerFolder folder;
    Child a(process(folder, {"a", 6 * kGiB})), other(process(folder, {"other", 10 * kGiB, nullptr}));
    CHECK(a.ask('j') == 'y');
    CHECK(other.ask('j') == 'y');
    Place waiter;
    REQUIRE(waiter.open(folder));
    waiter.ledger.reserves_under(kRule, kSlice);
    waiter.ledger.queue_up(6 * kGiB, "waiter");
    CHECK(waiter.join("w", 6 * kGiB, 6 * kGiB, AccountKind::job) == Joined::refused);
    other.kill();
    Child less(process(folder, {"less", 8 * kGiB, nullptr}));
    CHECK(waiter.join("w", 6 * kGiB, 6 * kGiB, AccountKind::job) == Joined::yes);
    CHECK(less.ask('j') == 'y');
}
