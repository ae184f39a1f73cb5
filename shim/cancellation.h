// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "policy/base/cancellation.h"

namespace cuslice {

// One thread's cancellation, as our pthread_cancel (cancellation.cpp) sees it. Never freed: a thread that gets the name
// of one that has ended takes over its record.
struct alignas(64) CancellationRecord {
    enum class Asked : uint8_t { never, pending, delivered };
    std::atomic<pthread_t> thread{0};
    std::atomic<int32_t> id{0};     // the kernel's number of the thread; 0: it was in no hook yet
    std::atomic<bool> held{false};  // written by the thread alone
    std::atomic<Asked> asked{Asked::never};
};

/// From now on it is known whether threads of the process can be cancelled asynchronously (asynchronous_threads), if
/// programs find our pthread_setcanceltype: the library was loaded with the program then, and has seen every choice.
/// Thread-safe.
void watch_cancellation_types();

// Holds this thread's cancellation back for a hook. The calls of the C library's that a CancellationDisabler makes are
// a fifth of a usual pair of an allocation and its free. So they are left out as long as nobody has asked for this
// thread's end, where every pthread_cancel of the process is ours: that leaves the cancellation of a thread that is in
// such a hook to the thread itself.
//
// A pthread_cancel that isn't ours after all (of code that was opened with RTLD_DEEPBIND) strikes in the driver, as
// without cuslice. So this is for hooks that have no lock over a call of the driver's; what they had reserved stays
// charged then, until the process ends.
class HeldCancellation {
  public:
    [[gnu::always_inline]] void begin() {
        record_ = own_;
        if (!record_) [[unlikely]]
            return begin_slowly();
        hold();
    }
    // With the calls, in any case.
    void begin_by_calls() {
        record_ = nullptr;
        calls_.begin();
    }
    [[gnu::always_inline]] void end() {
        if (!record_)
            return calls_.end();
        std::atomic_signal_fence(std::memory_order_seq_cst);
        record_->held.store(before_, std::memory_order_release);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (record_->asked.load(std::memory_order_relaxed) != CancellationRecord::Asked::never) [[unlikely]]
            end_slowly();
    }

    /// This thread's record. Null if it can have none.
    static CancellationRecord* record();
    /// This thread is in such a hook, and no call was needed.
    static bool held_by_record();
    /// This thread can be cancelled at any time from now on, or no longer. While it can, the calls are made in any
    /// case: a pthread_cancel that isn't ours would strike wherever it is.
    static void choose_asynchronous(bool asynchronous);

  private:
    // Between the store and the load lies the barrier of whoever asks (OwnerLock::barrier_in_all): either it is seen
    // here, or this thread is seen to be held.
    [[gnu::always_inline]] void hold() {
        before_ = record_->held.load(std::memory_order_relaxed);
        called_ = false;
        record_->held.store(true, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (record_->asked.load(std::memory_order_relaxed) != CancellationRecord::Asked::never) [[unlikely]]
            call();
    }
    void begin_slowly();
    void call();
    void end_slowly();

    static constinit thread_local CancellationRecord* own_;   // null: none yet, or the calls are made
    static constinit thread_local CancellationRecord* kept_;  // its record, while it can be cancelled at any time
    static constinit thread_local bool asynchronous_;

    CancellationRecord* record_ = nullptr;
    bool before_ = false;  // held by a hook further out
    bool called_ = false;
    CancellationDisabler calls_;
};

}  // namespace cuslice
