// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>

#include "policy/allocator/owner_lock.h"
#include "policy/allocator/records.h"
#include "policy/base/mutex.h"
#include "policy/base/page_vector.h"

namespace cuslice {

/// Threads that call the driver on cuslice's own account where a capture forbids it, or would be ended by it: they wait
/// for a context's work, or record an event in it. Each counts itself in before it looks for captures, and a capture
/// that begins waits for those that are in; so neither comes in between the other's look and its call.
///
/// While nothing is captured a thread counts itself in by a store to a record of its own, and whoever keeps them out
/// makes the kernel run a barrier in every thread (OwnerLock): no atomic exchange. While something is, or where the
/// kernel has no such barrier, threads go by the lock. All of it is guarded by the mutex of CaptureTracker, but for
/// what is said to need none.
class CaptureAskers {
    enum : uint32_t { kOutside, kInside, kGivenUp };

  public:
    /// A thread's own record, in a cache line of its own.
    class alignas(64) Asker {
        friend CaptureAskers;
        std::atomic<uint32_t> inside{kOutside};
        std::atomic<bool> by_lock{true};

      public:
        Asker* next = nullptr;
    };
    /// Counts this thread in without a lock, and says what to leave with. False: it is to go by the lock, with enter().
    static bool enter_at_once(Asker** entered);
    static void leave_at_once(Asker* own);

    /// Counts this thread in. Without memory to write it down in it is in all the same, and nobody waits for it.
    void enter();
    /// This thread is out, also where a longjmp has left something unfinished.
    void leave();

    /// True if this thread has a record; without the lock. Where threads have to go by the lock none needs one.
    static bool is_listed() { return own_ != &nobody_ || kept_ || !OwnerLock::asymmetric(); }
    /// Gives it one. False: there is no memory.
    bool list();
    /// Its thread ends.
    void unlist();
    /// This thread can be cancelled at any time from now on, or no longer. While it can, enter_at_once() refuses it:
    /// nothing holds its cancellation back there while the driver is called. Takes no lock.
    static void choose_asynchronous(bool asynchronous);

    /// From now on all threads go by the lock, until let_in(). True if some didn't: then wait_for_barrier(), without
    /// the lock, before any_inside().
    bool keep_out();
    static void wait_for_barrier();
    void let_in();

    /// True if any other thread is in, but for those that were given up.
    bool any_inside();
    /// Nobody waits any longer for those that are in now.
    void give_up();

    /// In a forked child, whose one thread is in nothing.
    void forget_all();

  private:
    struct Inside {
        uintptr_t thread;
        bool given_up;
    };

    static constinit Asker nobody_;  // of all threads that have no record
    static constinit thread_local Asker* own_;
    static constinit thread_local Asker* kept_;  // its record, while it can be cancelled at any time

    Records<Asker> records_;
    Asker* first_ = nullptr;
    PageVector<Inside> inside_;  // by the lock
    static constinit std::atomic<bool> refused_;
};

inline bool CaptureAskers::enter_at_once(Asker** entered) {
    Asker* const own = own_;
    *entered = own;
    own->inside.store(kInside, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (!own->by_lock.load(std::memory_order_acquire)) [[likely]]
        return true;
    leave_at_once(own);
    return false;
}

inline void CaptureAskers::leave_at_once(Asker* own) { own->inside.store(kOutside, std::memory_order_release); }

}  // namespace cuslice
