#include "policy/mutex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace cuslice {

static_assert(sizeof(std::atomic<int>) == sizeof(int), "the kernel looks at the bare word");

// What is done under these locks takes less time than going to sleep does. So a look or two, for about a microsecond;
// but a holder that has been preempted is not waited for like that.
bool Mutex::spin() {
    constexpr int kLooks = 60;
    for (int i = 0; i < kLooks; i++) {
        int expected = kFree;
        if (state_.load(std::memory_order_relaxed) == kFree &&
            state_.compare_exchange_weak(expected, kHeld, std::memory_order_acquire))
            return true;
        __builtin_ia32_pause();
    }
    return false;
}

void Mutex::lock_slowly() {
    if (spin()) return;
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
