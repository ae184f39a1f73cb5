// SPDX-License-Identifier: Apache-2.0
#pragma once
// Launches of spinning kernels, of which some are always queued, and figures of those that ended within a window.
#include <deque>
#include <vector>

#include "lab/hardware/spin.h"

namespace cuslice::check {

/// Figures of the launches that ended within a window.
struct LaunchFigures {
    int kernels = 0;
    /// Sum of the times from the event before each launch to the one behind it.
    double events_ms = 0;
    /// From the end of one launch to the end of the next, and from the last one's to the window's.
    double longest_gap_ms = 0;
    /// Time that each call took on the host, also of launches that ended later.
    std::vector<double> call_us;
};

class LaunchQueue {
  public:
    /// Each launch is of so many kernels: 1 is a plain one, more are a graph. At most `depth` are queued at a time.
    LaunchQueue(Spin& spin, CUstream stream, int kernels, size_t depth);

    /// The window's beginning.
    void begin(double window_ms);
    /// Waits for the oldest launch where the queue is full.
    void submit();
    void drain();

    LaunchFigures figures() const;

  private:
    struct Marks {
        CUevent begin;
        CUevent end;
    };

    Marks take_marks();
    void call();
    void finish_oldest();
    void count(const Marks& marks);

    Spin& spin_;
    CUstream stream_;
    int kernels_;
    size_t depth_;
    CUgraphExec graph_ = nullptr;
    CUevent began_;
    double window_ms_ = 0;
    double last_end_ms_ = 0;
    std::deque<Marks> queued_;
    std::vector<Marks> spare_;
    LaunchFigures figures_;
};

double now_us();
/// An event with a time; who waits for it sleeps.
CUevent make_event();
double elapsed_ms(CUevent from, CUevent to);

}  // namespace cuslice::check
