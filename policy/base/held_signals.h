// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <signal.h>

namespace cuslice {

/// Holds back, in this thread, the signals that have a handler, where a handler that leaves by siglongjmp would leave a
/// lock of somebody else's behind: that of the C library's malloc, the loader's, or one of NVML's own. A handler that
/// was called for runs when this ends.
///
/// A signal that nobody handles does as ever: an interrupt from the keyboard ends a program whose NVML hangs. Nor is
/// anything held back that the thread's own code causes, or that a garbage collector stops threads with (SIGPWR,
/// SIGXCPU, signals for real time): it would wait for this thread, and this thread for a lock of one that is stopped.
///
/// Costs some twenty system calls, so not for what is done often. Keeps errno. For automatic variables only; they nest.
class HeldSignals {
  public:
    HeldSignals();
    ~HeldSignals();
    HeldSignals(const HeldSignals&) = delete;
    HeldSignals& operator=(const HeldSignals&) = delete;

  private:
    sigset_t before_;
    bool holds_ = false;
};

}  // namespace cuslice
