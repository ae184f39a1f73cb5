// Locks that a kernel or a sandbox does not give.
#include <errno.h>
#include <sys/syscall.h>

#include <cstdio>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/policy/ledger/place.h"
#include "tests/refused_calls.h"

using namespace cuslice::ledger;
using namespace cuslice::tests;

namespace {

// From now on fcntl's commands [from, to] are refused to this process.
bool refuse_fcntl(unsigned from, unsigned to, unsigned error) {
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, from, 0, 2),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, to, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    return filter_calls(program);
}

// A member on a kernel before 3.15, or under an emulated one.
std::function<char(char)> old_member(const LedgerFolder& folder) {
    return [inner = member(folder)](char letter) {
        if (letter == 'o') return refuse_fcntl(F_OFD_GETLK, F_OFD_SETLKW, EINVAL) ? 'y' : 'n';
        return inner(letter);
    };
}

// The C library's readlink() is the older call where there is one.
#ifdef SYS_readlink
constexpr unsigned kReadLink = SYS_readlink;
#else
constexpr unsigned kReadLink = SYS_readlinkat;
#endif

// From now on the process can't tell its pid namespace, as where there is no /proc.
bool refuse_readlink() { return refuse_call(kReadLink, ENOENT); }

}  // namespace

TEST_CASE("where the kernel has no locks of open files, those of processes are asked for") {
    if (!can_filter_calls()) return;
    const LedgerFolder folder;
    const int file = open((folder.path + "/file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(lock_byte_for_process(file, 3));
    Child child([&](char letter) {
        bool unknown = false;
        switch (letter) {
            case 'o':
                return refuse_fcntl(F_OFD_GETLK, F_OFD_SETLKW, EINVAL) ? 'y' : 'n';
            case 'e':
                return refuse_fcntl(F_GETLK, F_SETLKW, EPERM) ? 'y' : 'n';
            default: {
                const bool locked = is_locked(file, static_cast<std::uint64_t>(letter - '0'), &unknown);
                return unknown ? '?' : locked ? 'y' : 'n';
            }
        }
    });
    for (int round = 0; round < 2; round++) {
        CHECK(child.ask('3') == 'y');
        CHECK(child.ask('2') == 'n');
        if (round == 0) REQUIRE(child.ask('o') == 'y');
    }
    REQUIRE(child.ask('e') == 'y');
    CHECK(child.ask('3') == '?');
    CHECK(child.ask('2') == '?');
    close(file);
}

TEST_CASE("where the kernel has no locks of open files, who leaves the queue gives up its ticket") {
    if (!can_filter_calls()) return;
    const LedgerFolder folder;
    Child child([&, place = std::make_shared<Place>()](char letter) {
        switch (letter) {
            case 'o':
                return refuse_fcntl(F_OFD_GETLK, F_OFD_SETLKW, EINVAL) ? 'y' : 'n';
            case 'w':
                if (!place->open(folder)) return 'n';
                place->ledger.queue_up(kGiB, nullptr);
                return place->ledger.queued() ? 'y' : 'n';
            default:
                place->ledger.leave_queue();
                return 'y';
        }
    });
    REQUIRE(child.ask('o') == 'y');
    REQUIRE(child.ask('w') == 'y');
    const Mapped mapped(folder);
    CHECK(mapped.file->tickets[0].state.load() == TicketState::waiting);
    CHECK(mapped.file->tickets[0].lock == LockKind::process);
    CHECK(child.ask('l') == 'y');
    CHECK(mapped.file->tickets[0].state.load() == TicketState::free);
}

TEST_CASE("where there is no memory for a ledger's mapping it is said, and no file is left behind") {
    if (!can_filter_calls()) return;
    const LedgerFolder folder;
    Child child([&](char) {
        sock_filter program[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, sizeof(File), 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        if (!filter_calls(program)) return 's';
        Place place;
        if (place.open(folder)) return 'o';
        return std::string(place.failure.text) == "can't make " + folder.file() + ": Cannot allocate memory" ? 'y'
                                                                                                             : 'n';
    });
    CHECK(child.ask('j') == 'y');
    CHECK(std::filesystem::is_empty(folder.path));
}

TEST_CASE("a process that can't tell its pid namespace puts its ledger back, with what it holds") {
    if (!can_filter_calls()) return;
    const LedgerFolder folder;
    Child child([&, inner = member(folder)](char letter) {
        if (letter == 'o') return refuse_readlink() ? 'y' : 'n';
        return inner(letter);
    });
    REQUIRE(child.ask('o') == 'y');
    REQUIRE(child.ask('j') == 'y');
    REQUIRE(child.ask('r') == 'y');
    std::filesystem::remove(folder.file());
    child.ask('d');
    CHECK(child.ask('t') == '5');
    const Mapped mapped(folder);
    CHECK(mapped.file->header.members == 1);
    CHECK(mapped.file->members[0].state.load() == MemberState::live);
    CHECK(mapped.file->members[0].role == MemberRole::user);
    CHECK(child.ask('g') == 'y');
    CHECK(mapped.file->accounts[0].total.bytes == 0);
}

TEST_CASE("a process that nothing can tell of its own locks doesn't take itself for dead") {
    if (!can_filter_calls()) return;
    const LedgerFolder folder;
    Child child([&, place = std::make_shared<Place>()](char letter) {
        switch (letter) {
            case 'o':
                return refuse_readlink() && refuse_fcntl(F_OFD_GETLK, F_OFD_SETLKW, EINVAL) ? 'y' : 'n';
            case 'j':
                if (!place->open(folder) || place->join("lab", 8 * kGiB) != Joined::yes) return 'n';
                place->ledger.queue_up(kGiB, nullptr);
                return place->membership.reserve(kGiB, 0, nullptr) && place->ledger.queued() ? 'y' : 'n';
            default:
                return place->ledger.take_back_dead() ? 'y' : 'n';
        }
    });
    REQUIRE(child.ask('o') == 'y');
    REQUIRE(child.ask('j') == 'y');
    const Mapped mapped(folder);
    REQUIRE(mapped.file->tickets[0].state.load() == TicketState::waiting);
    REQUIRE(mapped.file->members[0].pid_namespace == 0);
    CHECK(child.ask('d') == 'n');
    CHECK(mapped.file->tickets[0].state.load() == TicketState::waiting);
    CHECK(mapped.file->members[0].state.load() == MemberState::live);
    CHECK(mapped.file->accounts[0].total.bytes == kGiB);
}

TEST_CASE("where the kernel has no locks of open files, those of processes say who lives") {
    if (!can_filter_calls()) return;
    const LedgerFolder folder;
    Child a(old_member(folder)), b(old_member(folder)), c(member(folder));
    REQUIRE(a.ask('o') == 'y');
    REQUIRE(b.ask('o') == 'y');
    for (Child* one : {&a, &b, &c}) REQUIRE(one->ask('j') == 'y');
    CHECK(a.ask('r') == 'y');
    for (Child* other : {&b, &c}) {
        CHECK(other->ask('d') == 'n');
        CHECK(other->ask('t') == '5');
    }
    CHECK(a.ask('c') == 'y');  // its descriptors: /proc says that it lives
    CHECK(b.ask('d') == 'n');
    CHECK(c.ask('d') == 'n');
    CHECK(c.ask('r') == 'n');
    a.kill();
    CHECK(b.ask('d') == 'y');
    CHECK(c.ask('r') == 'y');
    c.kill();
    CHECK(b.ask('d') == 'y');
    CHECK(b.ask('r') == 'y');
}

TEST_CASE("a sandbox that allows no locks is not taken for a process that holds them") {
    if (!can_filter_calls()) return;
    const LedgerFolder folder;
    Child child([&](char) {
        Place place;
        if (!refuse_fcntl(F_GETLK, F_SETLKW, EPERM) || !refuse_fcntl(F_OFD_GETLK, F_OFD_SETLKW, EPERM)) return 's';
        if (place.open(folder)) return 'j';
        return std::string(place.failure.text) == "the ledger can't be locked: Operation not permitted" ? 'y' : 'n';
    });
    CHECK(child.ask('j') == 'y');
}
