// SPDX-License-Identifier: Apache-2.0
#pragma once
// Figures of who has had which engine, in the file of time. The timekeeper writes them.

#include <array>

#include "fake/time/layout.h"

namespace cuslice::fake {

class TimeFigures {
  public:
    explicit TimeFigures(TimeFile& file) : file_(file) {}

    void add(uint32_t context, Engine engine, Time begin, Time end);
    /// Writes turns that could still go on.
    void flush();

  private:
    void write(const TimedTurn& turn);

    TimeFile& file_;
    // The latest turn of each engine of each GPU: the next one may go on from it.
    std::array<std::array<TimedTurn, kEngines>, kTimeGpus> latest_{};
};

/// So far back busy time is known: all spans but the one that is being filled.
constexpr Time kTimeKept = (kTimeSpans - 1) * kTimeSpan;

/// Busy time of an engine within [end - length, end), or [end - kTimeKept, end) if that is shorter. `end` is now. Of a
/// span that began earlier the same part counts of its busy time as of itself.
Time busy_within(const BusySpans& spans, Time end, Time length);

}  // namespace cuslice::fake
