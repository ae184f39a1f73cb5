#pragma once
#include <atomic>

namespace cuslice {

// A lock of four bytes for the inside of somebody else's process: no initialisation, no destruction, nothing allocated,
// and no pthread symbol whose version moved between C libraries. Threads of one process only. Not recursive. A waiter
// spins for a moment and then sleeps in the kernel (futex), so that a preempted holder is not spun upon.
class Mutex {
  public:
    void lock() {
        int expected = kFree;
        if (!state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire)) lock_slowly();
    }
    // In a forked child, where whoever held it does not exist.
    void reset() { state_.store(kFree, std::memory_order_relaxed); }

    bool try_lock() {
        int expected = kFree;
        return state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire);
    }
    void unlock() {
        if (state_.exchange(kFree, std::memory_order_release) == kWaitedFor) wake_one();
    }

  private:
    enum : int { kFree, kHeld, kWaitedFor };
    bool spin();
    void lock_slowly();
    void wake_one();
    std::atomic<int> state_{kFree};
};

class LockGuard {
  public:
    explicit LockGuard(Mutex& mutex) : mutex_(mutex) { mutex_.lock(); }
    ~LockGuard() { mutex_.unlock(); }
    LockGuard(const LockGuard&) = delete;
    LockGuard& operator=(const LockGuard&) = delete;

  private:
    Mutex& mutex_;
};

}  // namespace cuslice
