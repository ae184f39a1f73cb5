#include "policy/wait_point.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

namespace cuslice {

namespace {

void futex(std::atomic<std::uint32_t>* word, int operation, std::uint32_t value) {
    const int saved_errno = errno;
    syscall(SYS_futex, word, operation, value, nullptr, nullptr, 0);
    errno = saved_errno;
}

}  // namespace

void WaitPoint::wait(std::uint32_t since) { futex(&changes_, FUTEX_WAIT_PRIVATE, since); }

void WaitPoint::changed() {
    changes_.fetch_add(1, std::memory_order_relaxed);
    futex(&changes_, FUTEX_WAKE_PRIVATE, INT_MAX);
}

}  // namespace cuslice
