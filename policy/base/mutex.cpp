// SPDX-License-Identifier: Apache-2.0
#include "policy/base/mutex.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <ctime>

namespace cuslice {

static_assert(sizeof(std::atomic<uintptr_t>) == 8 && std::endian::native == std::endian::little,
              "the kernel looks at the bare word, of which the first half has the bit");

namespace {

constinit std::atomic<void (*)(const LongWait&)> tell_long_wait{nullptr};
constinit std::atomic<uint64_t> long_wait{0};  // milliseconds

// The pthread_t of a thread, given its own_thread(). Both point to the same thing on x86_64; on aarch64 the register
// points behind what a pthread_t points to, whose size is the C library's own affair.
uintptr_t pthread_of(uintptr_t thread) { return thread - own_thread() + reinterpret_cast<uintptr_t>(pthread_self()); }

}  // namespace

constinit LockList the_lock_list;

void watch_long_waits(void (*tell)(const LongWait&), uint64_t milliseconds) {
    long_wait.store(milliseconds, std::memory_order_relaxed);
    tell_long_wait.store(tell, std::memory_order_release);
}

// Work under these locks takes less time than going to sleep does. So spin for about a microsecond; but no longer, as
// the holder may have been preempted.
bool Mutex::spin() {
    constexpr int kLooks = 60;
    for (int i = 0; i < kLooks; i++) {
        uintptr_t expected = kFree;
        if (state_.load(std::memory_order_relaxed) == kFree &&
            state_.compare_exchange_weak(expected, own_thread(), std::memory_order_acquire))
            return true;
        spin_pause();
    }
    return false;
}

[[gnu::noinline]] void Mutex::lock_slowly() {
    if (is_own())
        return;
    if (state_.load(std::memory_order_relaxed) == kNew)
        the_lock_list.enlist(*this);
    if (spin())
        return;
    const int saved_errno = errno;
    LongWait wait;
    wait.waiting_at = __builtin_return_address(0);
    for (;;) {
        uintptr_t state = state_.load(std::memory_order_relaxed);
        if (state == kFree) {
            // Others may be asleep still: whoever has slept can't know.
            if (state_.compare_exchange_weak(state, own_thread() | kWaitedFor, std::memory_order_acquire))
                break;
        } else if (state & kWaitedFor ||
                   state_.compare_exchange_weak(state, state | kWaitedFor, std::memory_order_relaxed)) {
            sleep(state | kWaitedFor, &wait);
        }
    }
    errno = saved_errno;
}

[[gnu::noinline]] bool Mutex::try_lock_first() {
    the_lock_list.enlist(*this);
    uintptr_t expected = kFree;
    return state_.compare_exchange_strong(expected, own_thread(), std::memory_order_acquire);
}

// Until the state is another one, or for no reason.
void Mutex::sleep(uintptr_t state, LongWait* wait) {
    const auto tell = wait->mutex ? nullptr : tell_long_wait.load(std::memory_order_acquire);
    const uint64_t most = long_wait.load(std::memory_order_relaxed);
    const timespec time{static_cast<std::time_t>(most / 1000), static_cast<long>(most % 1000 * 1'000'000)};
    const long result = syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, static_cast<uint32_t>(state),
                                tell ? &time : nullptr, nullptr, 0);
    if (!tell || result == 0 || errno != ETIMEDOUT)
        return;
    wait->mutex = this;
    wait->holder = pthread_of(state & ~uintptr_t{kWaitedFor});
    wait->milliseconds = most;
    tell(*wait);
}

void Mutex::wake_one() {
    const int saved_errno = errno;
    syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    errno = saved_errno;
}

// A thread that has come so far has not had the lock yet. So whoever holds enlisting_ meets no lock that somebody else
// has and that isn't in the list. A signal handler may come in here a second time.
void LockList::enlist(Mutex& mutex) {
    uintptr_t expected = Mutex::kNew;
    if (mutex.rank_ != LockRank::enlisting) {
        const LockGuard lock(enlisting_);
        if (!mutex.enlisted_.exchange(true, std::memory_order_relaxed)) {
            std::atomic<Mutex*>& first = first_[static_cast<unsigned>(mutex.rank_)];
            mutex.next_ = first.load(std::memory_order_relaxed);
            while (!first.compare_exchange_weak(mutex.next_, &mutex, std::memory_order_release)) {
            }
            count_.fetch_add(1, std::memory_order_release);
        }
    }
    mutex.state_.compare_exchange_strong(expected, Mutex::kFree, std::memory_order_release);
}

template <typename Visit>
void LockList::each(LockRank rank, Visit visit) {
    Mutex* at = first_[static_cast<unsigned>(rank)].load(std::memory_order_acquire);
    for (; at; at = at->next_)
        visit(*at);
}

template <typename Visit>
void LockList::each(Visit visit) {
    for (unsigned rank = 0; rank < kRanks; rank++)
        each(static_cast<LockRank>(rank), visit);
}

// Skips a lock that this thread has already, and keeps across the fork: a driver forks while it makes a context.
void LockList::take(Mutex& mutex) {
    if (mutex.is_own())
        return;
    mutex.lock_in_any_order();
    mutex.forking_.store(true, std::memory_order_relaxed);
}

void LockList::give_back(Mutex& mutex) {
    if (!mutex.is_own() || !mutex.forking_.load(std::memory_order_relaxed))
        return;
    mutex.forking_.store(false, std::memory_order_relaxed);
    mutex.unlock();
}

// With every lock of the list another thread may be about to have one that is new. Then it is all done again. So the
// count is read before the list, and a lock is counted after it is in there.
void LockList::take() {
    for (;;) {
        const unsigned known = count_.load(std::memory_order_acquire);
        for (unsigned rank = 0; rank < kRanks; rank++)
            if (const auto one = static_cast<LockRank>(rank); fork_waits_for(one))
                each(one, [](Mutex& mutex) { take(mutex); });
        take(enlisting_);
        if (count_.load(std::memory_order_relaxed) == known)
            return;
        give_back();
    }
}

// The last rank first: who waits for the first one comes by none before all are free.
void LockList::give_back() {
    give_back(enlisting_);
    for (unsigned rank = kRanks; rank-- > 0;)
        each(static_cast<LockRank>(rank), [](Mutex& mutex) { give_back(mutex); });
}

void LockList::free_others() {
    each([](Mutex& mutex) {
        if (!fork_waits_for(mutex.rank_) && !mutex.is_own())
            mutex.state_.store(Mutex::kFree, std::memory_order_relaxed);
    });
}

void LockList::leave() {
    each([](Mutex& mutex) CUSLICE_UNCHECKED {
        if (mutex.is_own())
            mutex.unlock();
    });
    if constexpr (LockOrder::kChecked)
        LockOrder::left();
}

}  // namespace cuslice
