#include "policy/base/mutex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <ctime>

namespace cuslice {

static_assert(sizeof(std::atomic<std::uintptr_t>) == 8 && std::endian::native == std::endian::little,
              "the kernel looks at the bare word, of which the first half has the bit");

namespace {

constinit std::atomic<void (*)(const LongWait&)> tell_long_wait{nullptr};
constinit std::atomic<std::uint64_t> long_wait{0};  // milliseconds

}  // namespace

void watch_long_waits(void (*tell)(const LongWait&), std::uint64_t milliseconds) {
    long_wait.store(milliseconds, std::memory_order_relaxed);
    tell_long_wait.store(tell, std::memory_order_release);
}

// What is done under these locks takes less time than going to sleep does. So a look or two, for about a microsecond;
// but a holder that has been preempted is not waited for like that.
bool Mutex::spin() {
    constexpr int kLooks = 60;
    for (int i = 0; i < kLooks; i++) {
        std::uintptr_t expected = kFree;
        if (state_.load(std::memory_order_relaxed) == kFree &&
            state_.compare_exchange_weak(expected, own_thread(), std::memory_order_acquire))
            return true;
        __builtin_ia32_pause();
    }
    return false;
}

[[gnu::noinline]] void Mutex::lock_slowly() {
    if ((state_.load(std::memory_order_relaxed) & ~std::uintptr_t{kWaitedFor}) == own_thread()) return;
    if (spin()) return;
    const int saved_errno = errno;
    LongWait wait;
    wait.waiting_at = __builtin_return_address(0);
    for (;;) {
        std::uintptr_t state = state_.load(std::memory_order_relaxed);
        if (state == kFree) {
            // Others may be asleep still: whoever has slept can't know.
            if (state_.compare_exchange_weak(state, own_thread() | kWaitedFor, std::memory_order_acquire)) break;
        } else if (state & kWaitedFor ||
                   state_.compare_exchange_weak(state, state | kWaitedFor, std::memory_order_relaxed)) {
            sleep(state | kWaitedFor, &wait);
        }
    }
    errno = saved_errno;
}

// Until the state is another one, or for no reason.
void Mutex::sleep(std::uintptr_t state, LongWait* wait) {
    const auto tell = wait->mutex ? nullptr : tell_long_wait.load(std::memory_order_acquire);
    const std::uint64_t most = long_wait.load(std::memory_order_relaxed);
    const timespec time{static_cast<std::time_t>(most / 1000), static_cast<long>(most % 1000 * 1'000'000)};
    const long result = syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, static_cast<std::uint32_t>(state),
                                tell ? &time : nullptr, nullptr, 0);
    if (!tell || result == 0 || errno != ETIMEDOUT) return;
    wait->mutex = this;
    wait->holder = state & ~std::uintptr_t{kWaitedFor};
    wait->milliseconds = most;
    tell(*wait);
}

void Mutex::wake_one() {
    const int saved_errno = errno;
    syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    errno = saved_errno;
}

}  // namespace cuslice
