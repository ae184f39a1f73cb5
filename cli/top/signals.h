// SPDX-License-Identifier: Apache-2.0
// Signals as something to read: the view ends, stops and goes on between two frames, not in the middle of one.
#pragma once

#include <signal.h>

namespace cuslice::cli::top {

/// Holds back the signals that end, stop and continue a process or tell of a new size of its terminal, for as long as
/// it lives; but for those that were ignored before. For a process with one thread.
class Signals {
  public:
    Signals();
    ~Signals();
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

    int descriptor() const { return descriptor_; }
    /// The next that has come; 0 if none has.
    int take() const;
    /// Does what `signal` does by itself: ends the process, or stops it and returns once it goes on.
    static void let(int signal);

  private:
    sigset_t before_, held_;
    int descriptor_;
};

}  // namespace cuslice::cli::top
