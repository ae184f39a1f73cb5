// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/header_lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "policy/ledger/liveness.h"

namespace cuslice::ledger {

namespace {

// `from`: who has it; 0: nobody.
bool take(Header& header, uint64_t from, const Locker& self) {
    return __atomic_compare_exchange_n(&header.holder, &from, self.id, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

// For those who wait, and for whoever finds out that this process has ended. Its number comes last: before that, the
// rest is of another holder.
void sign(Header& header, const Locker& self) {
    __atomic_store_n(&header.signed_by, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&header.locker_namespace, self.process.pid_namespace, __ATOMIC_RELAXED);
    __atomic_store_n(&header.locker_start, self.process.start_time, __ATOMIC_RELAXED);
    LockKind kind = self.kind;
    __atomic_store(&header.locker_lock, &kind, __ATOMIC_RELAXED);
    __atomic_store_n(&header.locker, self.process.pid, __ATOMIC_SEQ_CST);
    __atomic_store_n(&header.signed_by, self.id, __ATOMIC_RELEASE);
}

// A holder that has not signed yet is known by its presence alone. `waited`: for as long as anybody is waited for.
bool has_ended(const Header& header, uint64_t holder, const Locker& self, bool waited) {
    const Life presence = life_of(self.where, holder);
    LockKind lock = LockKind::open_file;
    ProcessIdentity process;
    if (__atomic_load_n(&header.signed_by, __ATOMIC_ACQUIRE) == holder) {
        __atomic_load(&header.locker_lock, &lock, __ATOMIC_RELAXED);
        process.pid = __atomic_load_n(&header.locker, __ATOMIC_RELAXED);
        process.pid_namespace = __atomic_load_n(&header.locker_namespace, __ATOMIC_RELAXED);
        process.start_time = __atomic_load_n(&header.locker_start, __ATOMIC_RELAXED);
    }
    return !lives(presence, lock, process, waited ? Trusted::others : Trusted::own);
}

// Where a machine has far more to do than processors, a holder waits for one for longer than anybody has patience.
// `seen`: how often it had been handed on before its holder was asked about.
bool is_worth_more(const Header& header, uint32_t seen, Deadline& deadline) {
    const int32_t pid = locker_of(header);
    const bool gets_on = __atomic_load_n(&header.handed_on, __ATOMIC_SEQ_CST) != seen;
    if (!gets_on && (pid <= 0 || !is_runnable(pid)))
        return false;
    deadline.renew();
    return !deadline.passed();
}

}  // namespace

// Many processes may wait at once, as when all of a job start together: polled for, the lock would cost more than what
// it is held for. A holder that was killed wakes nobody, so nobody sleeps for long.
bool lock_header_until(Header& header, const Locker& self, Deadline deadline) {
    constexpr long kMaxAsleep = 80'000'000;  // nanoseconds
    long asleep = 5'000'000;
    uint32_t seen = __atomic_load_n(&header.handed_on, __ATOMIC_SEQ_CST);
    uint64_t known = 0;  // the holder when it was looked at last
    for (bool first = true;; first = false) {
        if (take(header, 0, self))
            break;
        const uint64_t holder = __atomic_load_n(&header.holder, __ATOMIC_ACQUIRE);
        const uint32_t now = __atomic_load_n(&header.handed_on, __ATOMIC_SEQ_CST);
        // Up to the first look it was this process that had to wait for a processor.
        if (first || now != seen)
            deadline.renew();
        const bool over = deadline.passed();
        if (holder && (over || (holder == known && now == seen)) && has_ended(header, holder, self, over)) {
            if (take(header, holder, self))
                break;
            continue;
        }
        if (over && !is_worth_more(header, now, deadline)) {
            errno = EAGAIN;
            return false;
        }
        seen = now;
        known = holder;
        // It has just been taken, or is about to be let go of.
        const int32_t pid = __atomic_load_n(&header.locker, __ATOMIC_SEQ_CST);
        if (!pid || !holder) {
            deadline.pause();
            continue;
        }
        if (!deadline.pause_for(header.locker, pid, asleep))
            asleep = std::min(2 * asleep, kMaxAsleep);
    }
    sign(header, self);
    return true;
}

void unlock_header(Header& header, const Locker& self) {
    __atomic_store_n(&header.locker, 0, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&header.handed_on, 1, __ATOMIC_SEQ_CST);
    uint64_t holder = self.id;
    __atomic_compare_exchange_n(&header.holder, &holder, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    syscall(SYS_futex, &header.locker, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

int32_t locker_of(const Header& header) {
    if (!__atomic_load_n(&header.holder, __ATOMIC_ACQUIRE))
        return 0;
    const int32_t pid = __atomic_load_n(&header.locker, __ATOMIC_RELAXED);
    const bool here = is_own_pid_namespace(__atomic_load_n(&header.locker_namespace, __ATOMIC_RELAXED));
    return pid > 0 && here ? pid : 0;
}

void name_locker(const Header& header, LedgerError* why) {
    if (!why)
        return;
    const int32_t pid = locker_of(header);
    if (pid <= 0)
        return set_text(why, "the ledger is locked by a process that does not let go of it");
    const bool stopped = is_stopped(pid);
    set_text(why, "the ledger is locked by pid %d, which %s", pid,
             stopped ? "is stopped (kill -CONT lets it go on)" : "does not let go of it");
}

}  // namespace cuslice::ledger
