// SPDX-License-Identifier: Apache-2.0
#include "policy/allocator/owner_lock.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace cuslice {

namespace {

long membarrier(int command) {
    const int saved_errno = errno;
    const long result = syscall(SYS_membarrier, command, 0, 0);
    errno = saved_errno;
    return result;
}

// Refused once, it is not trusted again.
constinit std::atomic<bool> refused{false};

}  // namespace

constinit std::atomic<bool> OwnerLock::asymmetric_{false};
constinit std::atomic<uint64_t> OwnerLock::barriers_{0};

void OwnerLock::prepare() {
#ifdef __SANITIZE_THREAD__
    // It can't see a barrier that the kernel makes.
#else
    const bool registered = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
    asymmetric_.store(registered && !refused.load(std::memory_order_relaxed), std::memory_order_relaxed);
#endif
}

bool OwnerLock::barrier_in_all() {
    if (!asymmetric())
        return false;
    barriers_.fetch_add(1, std::memory_order_relaxed);
    if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0)
        return true;
    refused.store(true, std::memory_order_relaxed);
    asymmetric_.store(false, std::memory_order_relaxed);
    return false;
}

bool OwnerLock::enter_slowly(uint32_t asked) {
    if (asked & kExchange) {
        exchanges_.store(true, std::memory_order_release);
        held_.exchange(1, std::memory_order_seq_cst);
        if (!(asked_.load(std::memory_order_seq_cst) & kRevoked))
            return true;
    }
    leave();
    return false;
}

// An owner that goes on without an exchange, as it has not been here since that became necessary, has its store in
// flight for some nanoseconds at most. After a pause either that store is seen, or its next look finds that the lock is
// revoked.
void OwnerLock::Barrier::run() {
    if (barrier_in_all() || !unsure_)
        return;
    const int saved_errno = errno;
    timespec pause{0, 1'000'000};
    while (nanosleep(&pause, &pause) != 0) {
    }
    errno = saved_errno;
}

bool OwnerLock::had() {
    // An owner that is in there is running, or would be if the processor were free.
    constexpr int kPatience = 20'000;
    for (int i = 0; i < kPatience; i++) {
        if (!held_.load(std::memory_order_seq_cst))
            return true;
        sched_yield();
    }
    return false;
}

}  // namespace cuslice
