// SPDX-License-Identifier: Apache-2.0
// Locks that a kernel or a sandbox does not give.
#include <errno.h>
#include <sys/syscall.h>

#include <cstdio>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/policy/ledger/place.h"
#include "tests/policy/ledger/steps.h"
#include "tests/refused_calls.h"

using namespace cuslice::ledger;
using namespace cuslice::tests;

namespace {

// Steps of children that refuse themselves calls, as a kernel or a sandbox would.
struct KernelStep {
    static constexpr char refuse_open_file_locks = 'o';
    static constexpr char refuse_process_locks = 'e';
    static constexpr char hide_pid_namespace = 'o';
    static constexpr char hide_own_locks = 'o';
    static constexpr char open = 'j';
    static constexpr char queue_up = 'w';
    static constexpr char leave_queue = 'l';
};

constexpr char look_at_byte(uint64_t number) { return digit(number); }

// Answers of a child whose ledger can't be opened.
struct Opening {
    static constexpr char not_refused = 's';
    static constexpr char opened = 'o';
    static constexpr char said_why = 'y';
    static constexpr char said_otherwise = 'n';
};

// A member on a kernel before 3.15, or under an emulated one.
std::function<char(char)> old_member(const LedgerFolder& folder) {
    return [inner = member(folder)](char step) {
        if (step == KernelStep::refuse_open_file_locks)
            return refuse_commands(SYS_fcntl, 1, F_OFD_GETLK, F_OFD_SETLKW, EINVAL) ? Answer::done : Answer::refused;
        return inner(step);
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
    if (!can_filter_calls())
        return;
    const LedgerFolder folder;
    const int file = open((folder.path + "/file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(lock_byte_for_process(file, 3));
    Child child([&](char step) {
        bool unknown = false;
        switch (step) {
            case KernelStep::refuse_open_file_locks:
                return refuse_commands(SYS_fcntl, 1, F_OFD_GETLK, F_OFD_SETLKW, EINVAL) ? Answer::done
                                                                                        : Answer::refused;
            case KernelStep::refuse_process_locks:
                return refuse_commands(SYS_fcntl, 1, F_GETLK, F_SETLKW, EPERM) ? Answer::done : Answer::refused;
            default: {
                const bool locked = is_locked(file, static_cast<uint64_t>(step - look_at_byte(0)), &unknown);
                if (unknown)
                    return Answer::unknown;
                return locked ? Answer::locked : Answer::not_locked;
            }
        }
    });
    for (int round = 0; round < 2; round++) {
        CHECK(child.ask(look_at_byte(3)) == Answer::locked);
        CHECK(child.ask(look_at_byte(2)) == Answer::not_locked);
        if (round == 0)
            REQUIRE(child.ask(KernelStep::refuse_open_file_locks) == Answer::done);
    }
    REQUIRE(child.ask(KernelStep::refuse_process_locks) == Answer::done);
    CHECK(child.ask(look_at_byte(3)) == Answer::unknown);
    CHECK(child.ask(look_at_byte(2)) == Answer::unknown);
    close(file);
}

TEST_CASE("where the kernel has no locks of open files, who leaves the queue gives up its ticket") {
    if (!can_filter_calls())
        return;
    const LedgerFolder folder;
    Child child([&, place = std::make_shared<Place>()](char step) {
        switch (step) {
            case KernelStep::refuse_open_file_locks:
                return refuse_commands(SYS_fcntl, 1, F_OFD_GETLK, F_OFD_SETLKW, EINVAL) ? Answer::done
                                                                                        : Answer::refused;
            case KernelStep::queue_up:
                if (!place->open(folder))
                    return Answer::refused;
                place->ledger.queue_up(kGiB, nullptr);
                return place->ledger.queued() ? Answer::done : Answer::refused;
            default:
                place->ledger.leave_queue();
                return Answer::done;
        }
    });
    REQUIRE(child.ask(KernelStep::refuse_open_file_locks) == Answer::done);
    REQUIRE(child.ask(KernelStep::queue_up) == Answer::done);
    const Mapped mapped(folder);
    CHECK(mapped.file->tickets[0].state.load() == TicketState::waiting);
    CHECK(mapped.file->tickets[0].lock == LockKind::process);
    CHECK(child.ask(KernelStep::leave_queue) == Answer::done);
    CHECK(mapped.file->tickets[0].state.load() == TicketState::free);
}

TEST_CASE("where there is no memory for a ledger's mapping it is said, and no file is left behind") {
    if (!can_filter_calls())
        return;
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
        if (!filter_calls(program))
            return Opening::not_refused;
        Place place;
        if (place.open(folder))
            return Opening::opened;
        return std::string(place.failure.text) == "can't make " + folder.file() + ": Cannot allocate memory"
                   ? Opening::said_why
                   : Opening::said_otherwise;
    });
    CHECK(child.ask(KernelStep::open) == Opening::said_why);
    CHECK(std::filesystem::is_empty(folder.path));
}

TEST_CASE("a process that can't tell its pid namespace puts its ledger back, with what it holds") {
    if (!can_filter_calls())
        return;
    const LedgerFolder folder;
    Child child([&, inner = member(folder)](char step) {
        if (step == KernelStep::hide_pid_namespace)
            return refuse_readlink() ? Answer::done : Answer::refused;
        return inner(step);
    });
    REQUIRE(child.ask(KernelStep::hide_pid_namespace) == Answer::done);
    REQUIRE(child.ask(Step::join) == Answer::joined);
    REQUIRE(child.ask(Step::reserve_5_gib) == Answer::reserved);
    std::filesystem::remove(folder.file());
    child.ask(Step::take_back_dead);
    CHECK(child.ask(Step::read_total) == gib(5));
    const Mapped mapped(folder);
    CHECK(mapped.file->header.members == 1);
    CHECK(mapped.file->members[0].state.load() == MemberState::live);
    CHECK(mapped.file->members[0].role == MemberRole::user);
    CHECK(child.ask(Step::give_back_5_gib) == Answer::given_back);
    CHECK(mapped.file->accounts[0].total.bytes == 0);
}

TEST_CASE("a process that nothing can tell of its own locks doesn't take itself for dead") {
    if (!can_filter_calls())
        return;
    const LedgerFolder folder;
    Child child([&, place = std::make_shared<Place>()](char step) {
        switch (step) {
            case KernelStep::hide_own_locks:
                return refuse_readlink() && refuse_commands(SYS_fcntl, 1, F_OFD_GETLK, F_OFD_SETLKW, EINVAL)
                           ? Answer::done
                           : Answer::refused;
            case Step::join:
                if (!place->open(folder) || place->join("lab", 8 * kGiB) != Joined::yes)
                    return Answer::refused;
                place->ledger.queue_up(kGiB, nullptr);
                return place->membership.reserve(kGiB, 0, nullptr) && place->ledger.queued() ? Answer::joined
                                                                                             : Answer::refused;
            default:
                return place->ledger.take_back_dead() ? Answer::taken_back : Answer::nothing_to_take_back;
        }
    });
    REQUIRE(child.ask(KernelStep::hide_own_locks) == Answer::done);
    REQUIRE(child.ask(Step::join) == Answer::joined);
    const Mapped mapped(folder);
    REQUIRE(mapped.file->tickets[0].state.load() == TicketState::waiting);
    REQUIRE(mapped.file->members[0].pid_namespace == 0);
    CHECK(child.ask(Step::take_back_dead) == Answer::nothing_to_take_back);
    CHECK(mapped.file->tickets[0].state.load() == TicketState::waiting);
    CHECK(mapped.file->members[0].state.load() == MemberState::live);
    CHECK(mapped.file->accounts[0].total.bytes == kGiB);
}

TEST_CASE("where the kernel has no locks of open files, those of processes say who lives") {
    if (!can_filter_calls())
        return;
    const LedgerFolder folder;
    Child a(old_member(folder)), b(old_member(folder)), c(member(folder));
    REQUIRE(a.ask(KernelStep::refuse_open_file_locks) == Answer::done);
    REQUIRE(b.ask(KernelStep::refuse_open_file_locks) == Answer::done);
    for (Child* one : {&a, &b, &c})
        REQUIRE(one->ask(Step::join) == Answer::joined);
    CHECK(a.ask(Step::reserve_5_gib) == Answer::reserved);
    for (Child* other : {&b, &c}) {
        CHECK(other->ask(Step::take_back_dead) == Answer::nothing_to_take_back);
        CHECK(other->ask(Step::read_total) == gib(5));
    }
    CHECK(a.ask(Step::close_descriptors) == Answer::closed);  // its descriptors: /proc says that it lives
    CHECK(b.ask(Step::take_back_dead) == Answer::nothing_to_take_back);
    CHECK(c.ask(Step::take_back_dead) == Answer::nothing_to_take_back);
    CHECK(c.ask(Step::reserve_5_gib) == Answer::refused);
    a.kill();
    CHECK(b.ask(Step::take_back_dead) == Answer::taken_back);
    CHECK(c.ask(Step::reserve_5_gib) == Answer::reserved);
    c.kill();
    CHECK(b.ask(Step::take_back_dead) == Answer::taken_back);
    CHECK(b.ask(Step::reserve_5_gib) == Answer::reserved);
}

TEST_CASE("a sandbox that allows no locks is not taken for a process that holds them") {
    if (!can_filter_calls())
        return;
    const LedgerFolder folder;
    Child child([&](char) {
        Place place;
        if (!refuse_commands(SYS_fcntl, 1, F_GETLK, F_SETLKW, EPERM) ||
            !refuse_commands(SYS_fcntl, 1, F_OFD_GETLK, F_OFD_SETLKW, EPERM))
            return Opening::not_refused;
        if (place.open(folder))
            return Opening::opened;
        return std::string(place.failure.text) == "the ledger can't be locked: Operation not permitted"
                   ? Opening::said_why
                   : Opening::said_otherwise;
    });
    CHECK(child.ask(KernelStep::open) == Opening::said_why);
}
