#pragma once
#include <pthread.h>

namespace cuslice {

// Holds this thread's cancellation back: wherever it holds a lock of ours, or stands between a charge and the driver's
// answer, and waits in the kernel or in the driver. A cancelled thread unlocks nothing here, as nothing is unwound
// without exceptions.
class CancellationHold {
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
class NotInBetween {
  public:
    NotInBetween() { pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type_); }
    ~NotInBetween() {
        if (type_ != PTHREAD_CANCEL_DEFERRED) pthread_setcanceltype(type_, nullptr);
    }
    NotInBetween(const NotInBetween&) = delete;
    NotInBetween& operator=(const NotInBetween&) = delete;

  private:
    int type_ = 0;
};

// Within one of those, where the driver or the kernel is called after all.
class AlsoUncancelled {
  public:
    AlsoUncancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state_); }
    ~AlsoUncancelled() { pthread_setcancelstate(state_, nullptr); }
    AlsoUncancelled(const AlsoUncancelled&) = delete;
    AlsoUncancelled& operator=(const AlsoUncancelled&) = delete;

  private:
    int state_ = 0;
};

class Uncancelled {
  public:
    Uncancelled() { hold_.begin(); }
    ~Uncancelled() { hold_.end(); }
    Uncancelled(const Uncancelled&) = delete;
    Uncancelled& operator=(const Uncancelled&) = delete;

  private:
    CancellationHold hold_;
};

}  // namespace cuslice
