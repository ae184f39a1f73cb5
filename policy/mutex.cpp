#include "policy/mutex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace cuslice {

static_assert(sizeof(std::atomic<int>) == sizeof(int), "the kernel looks at the bare word");

void Mutex::lock_slowly() {
    const int saved_errno = errno;
    while (state_.exchange(kWaitedFor, std::memory_order_acquire) != kFree)
        syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, kWaitedFor, nullptr, nullptr, 0);
    errno = saved_errno;
}

void Mutex::wake_one() {
    const int saved_errno = errno;
    syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    errno = saved_errno;
}

}  // namespace cuslice
