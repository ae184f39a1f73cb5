// Who still lives: by its lock, and where nobody can have one, by what /proc says.
#include "policy/ledger/liveness.h"

#include <fcntl.h>
#include <unistd.h>

#include <memory>

#include "policy/ledger/locks.h"
#include "policy/ledger/process_identity.h"
#include "tests/catch.h"
#include "tests/policy/ledger/place.h"

using namespace cuslice::ledger;
using namespace cuslice::tests;

namespace {

constexpr std::int32_t kNobody = 0x7fffffff;

// A member or a ticket of this process.
template <typename Owner>
void make_own(Owner& owner, LockKind lock) {
    const ProcessIdentity self = this_process();
    owner.pid = self.pid;
    owner.pid_namespace = self.pid_namespace;
    owner.start_time = self.start_time;
    owner.lock = lock;
}

struct Locks {
    explicit Locks(std::uint32_t place) {
        file = open((folder.path + "/file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        // By another description of the file, as another process would.
        other = open((folder.path + "/file").c_str(), O_RDWR | O_CLOEXEC);
        REQUIRE(lock_byte(other, byte_of_member(place)) == LockKind::open_file);
    }
    ~Locks() { close(file), close(other); }
    LedgerFolder folder;
    int file = -1, other = -1;
};

}  // namespace

TEST_CASE("a member lives as long as its byte is locked; without a lock that others see, as long as /proc has it") {
    const Locks locks(7);
    Member member{};
    make_own(member, LockKind::open_file);
    CHECK(lives(member, 7, locks.file));
    CHECK_FALSE(lives(member, 6, locks.file));  // its mapping is gone, and the lock with it
    member.pid = kNobody;
    CHECK(lives(member, 7, locks.file));  // in another namespace, maybe

    make_own(member, LockKind::process);
    CHECK(lives(member, 6, locks.file));  // who closed its descriptor has lost the lock
    member.start_time++;
    CHECK_FALSE(lives(member, 6, locks.file));
    member.start_time = 0;
    CHECK_FALSE(lives(member, 6, locks.file));
    make_own(member, LockKind::process);
    member.pid = kNobody;
    CHECK_FALSE(lives(member, 6, locks.file));
    member.start_time = 0;
    CHECK_FALSE(lives(member, 6, locks.file));
    make_own(member, LockKind::process);
    member.pid_namespace++;
    CHECK_FALSE(lives(member, 6, locks.file));  // there is no lock, and /proc is another one
}

TEST_CASE("a ticket's byte is its own, behind those of all members") {
    const Locks locks(place_of_ticket(3));
    Ticket ticket{};
    make_own(ticket, LockKind::open_file);
    CHECK(lives(ticket, 3, locks.file));
    CHECK_FALSE(lives(ticket, 2, locks.file));
    CHECK(place_of_ticket(0) == kMembers);
}

TEST_CASE("who was carried has no lock: /proc says whether it lives, and nothing says it of another namespace's") {
    const Locks locks(7);
    const MemberRole role = GENERATE(MemberRole::carried, MemberRole::carried_launcher);
    Member member{};
    make_own(member, LockKind::none);
    member.role = role;
    CHECK(lives(member, 3, locks.file));
    member.start_time++;
    CHECK_FALSE(lives(member, 3, locks.file));
    CHECK_FALSE(lives(member, 7, locks.file));
    member.pid = kNobody;
    member.start_time = 0;
    CHECK_FALSE(lives(member, 3, locks.file));
    member.pid_namespace++;
    CHECK(lives(member, 3, locks.file));
}

TEST_CASE("a process is told from others by its pid, its start and its namespace together") {
    Member own{};
    make_own(own, LockKind::open_file);
    CHECK(is_this_process(own));
    Member other{};
    make_own(other, LockKind::open_file);
    SECTION("another pid") { other.pid = kNobody; }
    SECTION("an earlier process of this pid") { other.start_time--; }
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
    SECTION("of another start") { program.start_time++; }
    SECTION("of another namespace") { program.pid_namespace++; }
    SECTION("that has ended") { program.state.store(MemberState::free); }
    SECTION("that is a launcher, too") { program.role = MemberRole::launcher; }
    SECTION("that is none of the file's members") { file->header.members = 2; }
    CHECK_FALSE(is_doubled(*file, launcher));
}
