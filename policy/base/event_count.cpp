// SPDX-License-Identifier: Apache-2.0
#include "policy/base/event_count.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace cuslice {

void EventCount::happened() {
    count_.fetch_add(1, std::memory_order_seq_cst);
    if (!waiting_.load(std::memory_order_seq_cst))
        return;
    const int saved_errno = errno;
    syscall(SYS_futex, &count_, FUTEX_WAKE_PRIVATE, 0x7fffffff, nullptr, nullptr, 0);
    errno = saved_errno;
}

void EventCount::wait(uint32_t seen) {
    const int saved_errno = errno;
    waiting_.fetch_add(1, std::memory_order_seq_cst);
    while (now() == seen)
        syscall(SYS_futex, &count_, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    errno = saved_errno;
}

void EventCount::wait_for(uint32_t seen, uint32_t nanoseconds) {
    const int saved_errno = errno;
    const timespec length{0, static_cast<long>(nanoseconds)};
    waiting_.fetch_add(1, std::memory_order_seq_cst);
    if (now() == seen)
        syscall(SYS_futex, &count_, FUTEX_WAIT_PRIVATE, seen, &length, nullptr, 0);
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    errno = saved_errno;
}

}  // namespace cuslice
