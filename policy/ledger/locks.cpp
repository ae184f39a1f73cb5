// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/locks.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "policy/base/kernel_clock.h"

namespace cuslice::ledger {

namespace {

struct flock one_byte(short type, uint64_t byte) {
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
    if (passed())
        return false;
    constexpr timespec kMoment{0, 50'000};
    const uint64_t before = kernel_clock(CLOCK_MONOTONIC);
    nanosleep(&kMoment, nullptr);
    leave_out_oversleep(before, kMoment.tv_nsec);
    return true;
}

bool Deadline::pause_for(const int32_t& word, int32_t value, long most) {
    const timespec time{0, most};
    const uint64_t before = kernel_clock(CLOCK_MONOTONIC);
    const bool woken = syscall(SYS_futex, &word, FUTEX_WAIT, value, &time, nullptr, 0) == 0 || errno != ETIMEDOUT;
    leave_out_oversleep(before, most);
    return woken;
}

// A process that sleeps far longer than it asked for was stopped, or its machine stood still, as a virtual one does
// while it is moved. Whoever has the lock may not have run since either, and could not let go of it.
void Deadline::leave_out_oversleep(uint64_t before, long asked) {
    constexpr uint64_t kUsual = 20'000'000;  // nanoseconds that a sleep takes longer on a busy machine
    const uint64_t slept = kernel_clock(CLOCK_MONOTONIC) - before, expected = static_cast<uint64_t>(asked) + kUsual;
    if (slept > expected)
        end_ = std::min(end_ + slept - expected, start_ + kMaxRenewed * patience_);
}

void Deadline::renew() { end_ = std::min(kernel_clock(CLOCK_MONOTONIC) + patience_, start_ + kMaxRenewed * patience_); }

bool means_held(int error) { return error == EACCES || error == EAGAIN; }

bool lock_byte_for_process(int file, uint64_t byte) {
    struct flock lock = one_byte(F_WRLCK, byte);
    return fcntl(file, F_SETLK, &lock) == 0;
}

LockKind lock_byte(int file, uint64_t byte) {
    struct flock lock = one_byte(F_WRLCK, byte);
    if (fcntl(file, F_OFD_SETLK, &lock) == 0)
        return LockKind::open_file;
    if (means_held(errno))
        return LockKind::none;
    return lock_byte_for_process(file, byte) ? LockKind::process : LockKind::none;
}

void unlock_byte(int file, uint64_t byte, LockKind kind) {
    struct flock lock = one_byte(F_UNLCK, byte);
    fcntl(file, kind == LockKind::open_file ? F_OFD_SETLK : F_SETLK, &lock);
}

// Asked as a reader would: whoever merely reads under the byte's lock, as any user may, is nobody's member.
bool is_locked(int file, uint64_t byte, bool* unknown) {
    struct flock lock = one_byte(F_RDLCK, byte);
    *unknown = false;
    if (fcntl(file, F_OFD_GETLK, &lock) == 0)
        return lock.l_type != F_UNLCK;
    lock = one_byte(F_RDLCK, byte);
    if (fcntl(file, F_GETLK, &lock) == 0)
        return lock.l_type != F_UNLCK;
    *unknown = true;
    return false;
}

}  // namespace cuslice::ledger
