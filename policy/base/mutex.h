// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>

#include "policy/base/cancellation.h"
#include "policy/base/lock_order.h"
#include "policy/base/lock_rank.h"
#include "policy/base/machine.h"
#include "policy/base/thread_annotations.h"

namespace cuslice {

// A lock for the inside of somebody else's process: no initialisation, no destruction, nothing allocated, and no
// pthread symbol whose version moved between C libraries. Threads of one process only. Not recursive. A waiter spins
// for a moment and then sleeps in the kernel (futex), so that a preempted holder is not spun upon. A thread that finds
// itself the holder has left whatever it was doing by a longjmp, and goes on as the holder.
//
// Whoever locks it first enlists it (LockList). In a process that forks by that list its memory is never given back.
class CUSLICE_CAPABILITY Mutex {
  public:
    constexpr explicit Mutex(LockRank rank) : rank_(rank) {}
    Mutex(const Mutex&) = delete;
    Mutex& operator=(const Mutex&) = delete;

    void lock() CUSLICE_ACQUIRE() CUSLICE_UNCHECKED {
        if constexpr (LockOrder::kChecked)
            LockOrder::taking(this, rank_);
        lock_in_any_order();
    }
    bool try_lock() CUSLICE_TRY_ACQUIRE(true) CUSLICE_UNCHECKED {
        uintptr_t expected = kFree;
        const bool had = state_.compare_exchange_strong(expected, own_thread(), std::memory_order_acquire) ||
                         (expected == kNew && try_lock_first());
        if constexpr (LockOrder::kChecked)
            if (had)
                LockOrder::took(this, rank_);
        return had;
    }
    void unlock() CUSLICE_RELEASE() CUSLICE_UNCHECKED {
        if constexpr (LockOrder::kChecked)
            LockOrder::gave_back(this);
        if (state_.exchange(kFree, std::memory_order_release) & kWaitedFor)
            wake_one();
    }
    // Tells clang, which can't see it, that this thread has the lock.
    void is_held() const CUSLICE_ASSERT_HELD() {}
    LockRank rank() const { return rank_; }

  private:
    friend class LockList;
    // Otherwise it is who holds it, and the bit if anybody may be asleep. New: it is not enlisted yet.
    enum : uintptr_t { kFree = 0, kWaitedFor = 1, kNew = 2 };
    bool is_own() const { return (state_.load(std::memory_order_relaxed) & ~uintptr_t{kWaitedFor}) == own_thread(); }
    void lock_in_any_order() {
        uintptr_t expected = kFree;
        if (!state_.compare_exchange_strong(expected, own_thread(), std::memory_order_acquire))
            lock_slowly();
    }
    bool try_lock_first();
    bool spin();
    void lock_slowly();
    void sleep(uintptr_t state, struct LongWait* wait);
    void wake_one();

    std::atomic<uintptr_t> state_{kNew};
    Mutex* next_ = nullptr;  // in the list of its rank
    const LockRank rank_;
    std::atomic<bool> enlisted_{false};
    std::atomic<bool> forking_{false};  // a thread that forks has taken it
};

// A lock that one thread has been waiting for for long.
struct LongWait {
    const Mutex* mutex = nullptr;
    uintptr_t holder = 0;              // the pthread_t of the thread that had it a moment ago
    const void* waiting_at = nullptr;  // code of the function that waits
    uint64_t milliseconds = 0;         // so far
};
// From now on each wait of this length is told, once, by the thread that waits. It holds no more locks than before.
void watch_long_waits(void (*tell)(const LongWait&), uint64_t milliseconds);

// The locks that anybody has had so far, for a process that forks: in a child nobody else is there to unlock one.
// Thread-safe.
class LockList {
  public:
    constexpr LockList() = default;
    LockList(const LockList&) = delete;
    LockList& operator=(const LockList&) = delete;

    // Before a fork: takes all that a fork waits for (fork_waits_for) and that this thread doesn't have already, and
    // keeps others from being enlisted.
    void take();
    // After it, in the parent and in the child: gives back what take() took.
    void give_back();
    // In the child, after that: those that a fork doesn't wait for are free, but for this thread's own.
    void free_others();
    // Unlocks all that this thread has, once it has left whatever it was doing by a longjmp.
    void leave() CUSLICE_UNCHECKED;

    // Before the lock is had for the first time.
    void enlist(Mutex& mutex);

  private:
    static constexpr unsigned kRanks = static_cast<unsigned>(LockRank::kCount);
    template <typename Visit>
    void each(LockRank rank, Visit visit);
    template <typename Visit>
    void each(Visit visit);
    static void take(Mutex& mutex);
    static void give_back(Mutex& mutex) CUSLICE_UNCHECKED;

    std::atomic<Mutex*> first_[kRanks] = {};  // nothing ever leaves them
    std::atomic<unsigned> count_{0};
    Mutex enlisting_{LockRank::enlisting};
};

extern constinit LockList the_lock_list;

// Locks for as long as it lives, and holds this thread's cancellation back by a `Cancellation` for a little longer: a
// thread that ends meanwhile would leave the lock behind.
template <typename Cancellation>
class CUSLICE_SCOPED_CAPABILITY LockGuardWith {
  public:
    explicit LockGuardWith(Mutex& mutex) CUSLICE_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
    ~LockGuardWith() CUSLICE_RELEASE() { mutex_.unlock(); }
    LockGuardWith(const LockGuardWith&) = delete;
    LockGuardWith& operator=(const LockGuardWith&) = delete;

  private:
    [[no_unique_address]] const Cancellation held_back_;
    Mutex& mutex_;
};

// Every caller holds it back already.
struct CancellationHeldBack {
    CancellationHeldBack() {}
};

// Where no call is made under the lock in which a deferred cancellation strikes.
using LockGuard = LockGuardWith<DeferCancellation>;
// Where the driver or the kernel is called under it (is_held_over_calls).
using DisablingLockGuard = LockGuardWith<DisableCancellation>;
// For the busiest locks. Builds for tests end a program in which a caller doesn't (LockOrder).
using UncancelledLockGuard = LockGuardWith<CancellationHeldBack>;

}  // namespace cuslice
