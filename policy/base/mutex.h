#pragma once
#include <atomic>
#include <cstdint>

namespace cuslice {

// The address of the thread's control block: what pthread_self() returns, without a call. Costs what a constant costs.
inline std::uintptr_t own_thread() {
    std::uintptr_t self;
    asm("movq %%fs:0, %0" : "=r"(self));
    return self;
}

// A lock of eight bytes for the inside of somebody else's process: no initialisation, no destruction, nothing
// allocated, and no pthread symbol whose version moved between C libraries. Threads of one process only. Not recursive.
// A waiter spins for a moment and then sleeps in the kernel (futex), so that a preempted holder is not spun upon. A
// thread that finds itself the holder has left whatever it was doing by a longjmp, and goes on as the holder.
class Mutex {
  public:
    void lock() {
        std::uintptr_t expected = kFree;
        if (!state_.compare_exchange_strong(expected, own_thread(), std::memory_order_acquire)) lock_slowly();
    }
    // Of a thread that has left whatever it was doing by a longjmp: unlocks it if it is this thread's.
    void leave() {
        if ((state_.load(std::memory_order_relaxed) & ~std::uintptr_t{kWaitedFor}) == own_thread()) unlock();
    }
    // In a forked child, where whoever held it does not exist.
    void reset() { state_.store(kFree, std::memory_order_relaxed); }

    bool try_lock() {
        std::uintptr_t expected = kFree;
        return state_.compare_exchange_strong(expected, own_thread(), std::memory_order_acquire);
    }
    void unlock() {
        if (state_.exchange(kFree, std::memory_order_release) & kWaitedFor) wake_one();
    }

  private:
    // Otherwise it is who holds it, and the bit if anybody may be asleep.
    enum : std::uintptr_t { kFree = 0, kWaitedFor = 1 };
    bool spin();
    void lock_slowly();
    void sleep(std::uintptr_t state, struct LongWait* wait);
    void wake_one();
    std::atomic<std::uintptr_t> state_{kFree};
};

// A lock that one thread has been waiting for for long.
struct LongWait {
    const Mutex* mutex = nullptr;
    std::uintptr_t holder = 0;         // the pthread_t of the thread that had it a moment ago
    const void* waiting_at = nullptr;  // code of the function that waits
    std::uint64_t milliseconds = 0;    // so far
};
// From now on each wait of this length is told, once, by the thread that waits. It holds no more locks than before.
void watch_long_waits(void (*tell)(const LongWait&), std::uint64_t milliseconds);

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
