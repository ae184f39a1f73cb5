#include "policy/ledger/locks.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "policy/base/kernel_clock.h"
#include "policy/ledger/process_identity.h"

namespace cuslice::ledger {

namespace {

constexpr std::size_t kPage = 4096;

struct flock one_byte(short type, std::uint64_t byte) {
    struct flock lock {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(byte);
    lock.l_len = 1;
    return lock;
}

}  // namespace

Deadline::Deadline(unsigned milliseconds)
    : patience_(milliseconds * 1'000'000ull), start_(kernel_clock(CLOCK_MONOTONIC)), end_(start_ + patience_) {}

bool Deadline::passed() const { return kernel_clock(CLOCK_MONOTONIC) >= end_; }

bool Deadline::pause() {
    if (passed()) return false;
    constexpr timespec kMoment{0, 50'000};
    const std::uint64_t before = kernel_clock(CLOCK_MONOTONIC);
    nanosleep(&kMoment, nullptr);
    leave_out_oversleep(before, kMoment.tv_nsec);
    return true;
}

bool Deadline::pause_for(const std::int32_t& word, std::int32_t value, long most) {
    const timespec time{0, most};
    const std::uint64_t before = kernel_clock(CLOCK_MONOTONIC);
    const bool woken = syscall(SYS_futex, &word, FUTEX_WAIT, value, &time, nullptr, 0) == 0 || errno != ETIMEDOUT;
    leave_out_oversleep(before, most);
    return woken;
}

// A process that sleeps far longer than it asked for was stopped, or its machine stood still, as a virtual one does
// while it is moved. Whoever has the lock may not have run since either, and could not let go of it.
void Deadline::leave_out_oversleep(std::uint64_t before, long asked) {
    constexpr std::uint64_t kUsual = 20'000'000;  // nanoseconds that a sleep takes longer on a busy machine
    const std::uint64_t slept = kernel_clock(CLOCK_MONOTONIC) - before,
                        expected = static_cast<std::uint64_t>(asked) + kUsual;
    if (slept > expected) end_ = std::min(end_ + slept - expected, start_ + kMaxRenewed * patience_);
}

void Deadline::renew() { end_ = std::min(kernel_clock(CLOCK_MONOTONIC) + patience_, start_ + kMaxRenewed * patience_); }

bool means_held(int error) { return error == EACCES || error == EAGAIN; }

bool lock_byte_for_process(int file, std::uint64_t byte) {
    struct flock lock = one_byte(F_WRLCK, byte);
    return fcntl(file, F_SETLK, &lock) == 0;
}

LockKind lock_byte(int file, std::uint64_t byte) {
    struct flock lock = one_byte(F_WRLCK, byte);
    if (fcntl(file, F_OFD_SETLK, &lock) == 0) return LockKind::open_file;
    if (means_held(errno)) return LockKind::none;
    return lock_byte_for_process(file, byte) ? LockKind::process : LockKind::none;
}

void unlock_byte(int file, std::uint64_t byte, LockKind kind) {
    struct flock lock = one_byte(F_UNLCK, byte);
    fcntl(file, kind == LockKind::open_file ? F_OFD_SETLK : F_SETLK, &lock);
}

LockKind lock_byte_until(int file, std::uint64_t byte, Deadline deadline) {
    for (;;) {
        const LockKind kind = lock_byte(file, byte);
        if (kind != LockKind::none || !means_held(errno)) return kind;
        if (!deadline.pause()) {
            errno = EAGAIN;
            return LockKind::none;
        }
    }
}

// Many processes may wait at once, as when all of a job start together: polled for, the lock would cost more than what
// it is held for. A holder that was killed wakes nobody, so nobody sleeps for long.
LockKind lock_header_until(int file, Header& header, Deadline deadline) {
    constexpr long kMaxAsleep = 80'000'000;  // nanoseconds
    long asleep = 5'000'000;
    std::uint32_t seen = __atomic_load_n(&header.handed_on, __ATOMIC_SEQ_CST);
    for (bool first = true;; first = false) {
        const LockKind kind = lock_byte(file, 0);
        if (kind != LockKind::none) {
            header.locker_namespace = own_pid_namespace();
            __atomic_store_n(&header.locker, getpid(), __ATOMIC_SEQ_CST);
            return kind;
        }
        if (!means_held(errno)) return kind;
        const std::int32_t holder = __atomic_load_n(&header.locker, __ATOMIC_SEQ_CST);
        const std::uint32_t now = __atomic_load_n(&header.handed_on, __ATOMIC_SEQ_CST);
        // Up to the first look it was this process that had to wait for a processor.
        if (first || now != seen) deadline.renew();
        seen = now;
        if (deadline.passed()) {
            errno = EAGAIN;
            return LockKind::none;
        }
        // It has just been taken, or is about to be let go of, or somebody has it who says nothing.
        if (!holder) {
            deadline.pause();
            continue;
        }
        if (!deadline.pause_for(header.locker, holder, asleep)) asleep = std::min(2 * asleep, kMaxAsleep);
    }
}

void unlock_header(int file, Header& header, LockKind kind) {
    __atomic_store_n(&header.locker, 0, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&header.handed_on, 1, __ATOMIC_SEQ_CST);
    unlock_byte(file, 0, kind);
    syscall(SYS_futex, &header.locker, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

// Asked as a reader would: whoever merely reads under the byte's lock, as any user may, is nobody's member.
bool is_locked(int file, std::uint64_t byte, bool* unknown) {
    struct flock lock = one_byte(F_RDLCK, byte);
    *unknown = false;
    if (fcntl(file, F_OFD_GETLK, &lock) == 0) return lock.l_type != F_UNLCK;
    lock = one_byte(F_RDLCK, byte);
    if (fcntl(file, F_GETLK, &lock) == 0) return lock.l_type != F_UNLCK;
    *unknown = true;
    return false;
}

std::int32_t locker_of(int file, const Header* header) {
    struct flock lock = one_byte(F_WRLCK, 0);
    if (fcntl(file, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return 0;
    if (lock.l_pid > 0) return lock.l_pid;
    const bool here =
        header && header->locker > 0 && header->locker_namespace && header->locker_namespace == read_pid_namespace();
    return here ? header->locker : 0;
}

bool PlaceLock::take(int file, std::uint32_t number) {
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    const int own = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    const int locked = own < 0 ? file : own;
    void* memory = mmap(nullptr, kPage, PROT_READ, MAP_SHARED, locked, 0);
    if (memory != MAP_FAILED && madvise(memory, kPage, MADV_DONTFORK) == 0) {
        anchor_ = memory;
        kind_ = lock_byte(locked, byte_of_member(number));
    } else {
        anchor_ = memory == MAP_FAILED ? nullptr : memory;
        kind_ = LockKind::none;
        errno = ENOMEM;
    }
    const int error = errno;
    if (kind_ != LockKind::open_file && anchor_) munmap(anchor_, kPage), anchor_ = nullptr;
    if (own >= 0) close(own);
    // A lock of the process went with that descriptor.
    if (kind_ == LockKind::process || (kind_ == LockKind::none && !means_held(error)))
        kind_ = lock_byte_for_process(file, byte_of_member(number)) ? LockKind::process : LockKind::none;
    else
        errno = error;
    return kind_ != LockKind::none;
}

bool PlaceLock::take_over_exec(int file, std::uint32_t number) {
    kind_ = lock_byte_for_process(file, byte_of_member(number)) ? LockKind::process : LockKind::none;
    return kind_ != LockKind::none;
}

void PlaceLock::give_up(int file, std::uint32_t number) {
    if (anchor_)
        munmap(anchor_, kPage);
    else if (kind_ == LockKind::process)
        unlock_byte(file, byte_of_member(number), kind_);
    *this = {};
}

int out_of_the_way(int file, bool keep_over_exec) {
    const int moved = fcntl(file, keep_over_exec ? F_DUPFD : F_DUPFD_CLOEXEC, kMinDescriptor);
    if (moved >= 0) {
        close(file);
        return moved;
    }
    if (keep_over_exec) fcntl(file, F_SETFD, 0);
    return file;
}

}  // namespace cuslice::ledger
