// SPDX-License-Identifier: Apache-2.0
// Liveness of members and tickets: by the lock, and by /proc where a process can't have one.
#include "policy/ledger/liveness.h"

#include <fcntl.h>
#include <unistd.h>

#include <memory>

#include "policy/ledger/presence.h"
#include "policy/ledger/process_identity.h"
#include "tests/catch.h"
#include "tests/policy/ledger/place.h"

using namespace cuslice::ledger;
using namespace cuslice::tests;

namespace {

constexpr int32_t kNobody = 0x7fffffff;

// A member or a ticket of this process.
template <typename Owner>
void make_own(Owner& owner, LockKind lock) {
    const ProcessIdentity self = this_process();
    owner.pid = self.pid;
    owner.pid_namespace = self.pid_namespace;
    owner.start_time = self.start_time;
    owner.lock = lock;
}

}  // namespace

TEST_CASE(
    "a member lives as long as its presence is locked, and without a lock that others see, as long as /proc has it") {
    const LedgerFolder folder;
    Living living(folder), ended(folder);
    const uint64_t of_ended = ended.presence.id();
    ended.end();
    const auto own = [&](const Member& member) { return lives(member, living.where, Trusted::own); };
    Member member{};
    make_own(member, LockKind::open_file);
    member.presence = living.presence.id();
    CHECK(own(member));
    member.pid = kNobody;
    CHECK(own(member));  // in another namespace, maybe
    make_own(member, LockKind::open_file);
    member.presence = of_ended;
    CHECK_FALSE(own(member));  // its mapping is gone, and the lock with it

    make_own(member, LockKind::process);
    CHECK(own(member));  // who closed its descriptor has lost the lock
    member.start_time += 100;
    CHECK_FALSE(own(member));
    member.start_time = 0;
    CHECK_FALSE(own(member));
    make_own(member, LockKind::process);
    member.pid = kNobody;
    CHECK_FALSE(own(member));
    make_own(member, LockKind::process);
    member.pid_namespace++;
    CHECK_FALSE(own(member));  // there is no lock, and /proc is another one
}

TEST_CASE("a ticket lives as a member does") {
    const LedgerFolder folder;
    Living living(folder);
    Ticket ticket{};
    make_own(ticket, LockKind::open_file);
    ticket.presence = living.presence.id();
    CHECK(lives(ticket, living.where));
    ticket.presence = 0;
    ticket.start_time += 100;
    CHECK_FALSE(lives(ticket, living.where));
}

TEST_CASE("of who has no presence any more /proc says whether it lives; of another namespace's nothing does") {
    const LedgerFolder folder;
    const Living here(folder);
    const MemberRole role = GENERATE(MemberRole::user, MemberRole::carried, MemberRole::carried_launcher);
    Member member{};
    make_own(member, LockKind::open_file);
    member.presence = 0x1234;
    member.role = role;
    for (const Trusted trusted : {Trusted::own, Trusted::others}) {
        CHECK(lives(member, here.where, trusted));
        Member earlier{};
        make_own(earlier, LockKind::open_file);
        earlier.start_time += 100;
        CHECK_FALSE(lives(earlier, here.where, trusted));
        // Where /proc can't tell, a member counts as dead in another user's ledger, and as alive in our own.
        Member elsewhere{};
        make_own(elsewhere, LockKind::open_file);
        elsewhere.pid_namespace++;
        CHECK(lives(elsewhere, here.where, trusted) == (trusted == Trusted::own));
    }
}

TEST_CASE("a process is told from others by its pid, its start and its namespace together") {
    Member own{};
    make_own(own, LockKind::open_file);
    CHECK(is_this_process(own));
    Member other{};
    make_own(other, LockKind::open_file);
    SECTION("another pid") { other.pid = kNobody; }
    SECTION("an earlier process of this pid") { other.start_time -= 100; }
    SECTION("this pid of another namespace") { other.pid_namespace++; }
    SECTION("a start that is not known") { other.start_time = 0; }
    SECTION("a namespace that is not known") { other.pid_namespace = 0; }
    CHECK_FALSE(is_this_process(other));
}

TEST_CASE("a launcher is shown as one with the program that it became, and with no other") {
    const auto file = std::make_unique<File>();
    Member& launcher = file->members[0];
    Member& program = file->members[2];
    file->header.members = 3;
    for (Member* member : {&launcher, &program}) {
        make_own(*member, LockKind::open_file);
        member->account = 4;
        member->state.store(MemberState::live);
    }
    launcher.role = GENERATE(MemberRole::launcher, MemberRole::carried_launcher);
    program.role = GENERATE(MemberRole::user, MemberRole::carried);
    CHECK(is_doubled(*file, launcher));
    CHECK_FALSE(is_doubled(*file, program));
    SECTION("of another account") { program.account = 5; }
    SECTION("of another pid") { program.pid++; }
    SECTION("of another start") { program.start_time += 100; }
    SECTION("of another namespace") { program.pid_namespace++; }
    SECTION("that has ended") { program.state.store(MemberState::free); }
    SECTION("that is a launcher, too") { program.role = MemberRole::launcher; }
    SECTION("that is none of the file's members") { file->header.members = 2; }
    CHECK_FALSE(is_doubled(*file, launcher));
}
