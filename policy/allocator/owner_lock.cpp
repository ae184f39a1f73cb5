#include "policy/allocator/owner_lock.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace cuslice {

namespace {

long membarrier(int command) {
    const int saved_errno = errno;
    const long result = syscall(SYS_membarrier, command, 0, 0);
    errno = saved_errno;
    return result;
}

}  // namespace

constinit std::atomic<bool> OwnerLock::asymmetric_{false};

void OwnerLock::prepare() {
#ifdef __SANITIZE_THREAD__
    // It can't see a barrier that the kernel makes.
#else
    asymmetric_.store(membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0, std::memory_order_relaxed);
#endif
}

bool OwnerLock::revoke() {
    revoked_.store(1, std::memory_order_seq_cst);
    if (asymmetric() && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0) {
        restore();
        return false;
    }
    // An owner that is in there is running, or would be if the processor were free.
    constexpr int kPatience = 20'000;
    for (int i = 0; i < kPatience; i++) {
        if (!held_.load(std::memory_order_seq_cst)) return true;
        sched_yield();
    }
    restore();
    return false;
}

}  // namespace cuslice
