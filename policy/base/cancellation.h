#pragma once
#include <pthread.h>

namespace cuslice {

// Holds this thread's cancellation back: wherever it holds a lock of ours, or stands between a charge and the driver's
// answer, and waits in the kernel or in the driver. A cancelled thread unlocks nothing here, as nothing is unwound
// without exceptions.
class CancellationDisabler {
  public:
    void begin() {
        // The type too: C libraries from 2.34 to 2.36 or so, when the signal of an asynchronous cancellation arrives,
        // look at the type alone, and one that was on its way strikes although cancellation is disabled. For a thread
        // of the default type this is a load and a compare.
        pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type_);
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
    DeferCancellation() { pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type_); }
    ~DeferCancellation() {
        if (type_ != PTHREAD_CANCEL_DEFERRED) pthread_setcanceltype(type_, nullptr);
    }
    DeferCancellation(const DeferCancellation&) = delete;
    DeferCancellation& operator=(const DeferCancellation&) = delete;

  private:
    int type_ = 0;
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
