// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace cuslice {

/// Threads of the process that can be cancelled asynchronously: `none` yet, or maybe some. Not known until somebody
/// watches which type programs choose (shim/cancellation.cpp), and seen for good once one has chosen it; a thread
/// chooses for itself alone, so that it knows its own choice.
enum class Asynchronous : uint8_t { none, not_known, seen };
inline constinit std::atomic<Asynchronous> asynchronous_threads{Asynchronous::not_known};

/// Called by a thread that was of the asynchronous type a moment ago: ends it if its cancellation is under way. Null
/// where nobody watches.
inline constinit std::atomic<void (*)()> end_if_cancelled{nullptr};

// The signal of a cancellation may be on its way. C libraries from 2.34 to 2.36 let it strike in a system call that
// comes later, even while cancellation is disabled: it arrives at the end of one that acts on nothing.
[[gnu::cold, gnu::noinline]] inline int choose_default_type_by_call() {
    int before = 0;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &before);
    if (before == PTHREAD_CANCEL_DEFERRED)
        return before;
    syscall(SYS_getppid);
    if (const auto end = end_if_cancelled.load(std::memory_order_relaxed))
        end();
    return before;
}

/// This thread is of the default type from here on. Returns the type that it had. The call of the C library's, which
/// takes some 20 instructions, is made only where it may have had the other one.
[[gnu::always_inline]] inline int choose_default_type() {
    if (asynchronous_threads.load(std::memory_order_relaxed) == Asynchronous::none) [[likely]]
        return PTHREAD_CANCEL_DEFERRED;
    return choose_default_type_by_call();
}

// Holds this thread's cancellation back: wherever it holds a lock of ours, or stands between a charge and the driver's
// answer, and waits in the kernel or in the driver. A cancelled thread unlocks nothing here, as nothing is unwound
// without exceptions.
class CancellationDisabler {
  public:
    void begin() {
        // The type too: C libraries from 2.34 to 2.36 or so, when the signal of an asynchronous cancellation arrives,
        // look at the type alone, and one that was on its way strikes although cancellation is disabled.
        type_ = choose_default_type();
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state_);
    }
    void end() {
        pthread_setcancelstate(state_, nullptr);
        if (type_ != PTHREAD_CANCEL_DEFERRED) [[unlikely]]
            pthread_setcanceltype(type_, nullptr);
    }

  private:
    int type_ = 0, state_ = 0;
};

// The same for a stretch in which no call of the C library's is made that acts on a cancellation: then only one that is
// asynchronous could strike, and the type alone has to be changed, which for most threads it need not be.
class DeferCancellation {
  public:
    DeferCancellation() : type_(choose_default_type()) {}
    ~DeferCancellation() {
        if (type_ != PTHREAD_CANCEL_DEFERRED) [[unlikely]]
            pthread_setcanceltype(type_, nullptr);
    }
    DeferCancellation(const DeferCancellation&) = delete;
    DeferCancellation& operator=(const DeferCancellation&) = delete;

  private:
    const int type_;
};

// Within one of those, where the driver or the kernel is called after all.
class DisableCancellationState {
  public:
    DisableCancellationState() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state_); }
    ~DisableCancellationState() { pthread_setcancelstate(state_, nullptr); }
    DisableCancellationState(const DisableCancellationState&) = delete;
    DisableCancellationState& operator=(const DisableCancellationState&) = delete;

  private:
    int state_ = 0;
};

class DisableCancellation {
  public:
    DisableCancellation() { hold_.begin(); }
    ~DisableCancellation() { hold_.end(); }
    DisableCancellation(const DisableCancellation&) = delete;
    DisableCancellation& operator=(const DisableCancellation&) = delete;

  private:
    CancellationDisabler hold_;
};

}  // namespace cuslice
