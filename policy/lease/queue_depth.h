// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace cuslice::lease {

/// Bound on what a holder may have queued while there are others, so that its queue runs out soon after its turn: as
/// many launches as the GPU carries out in `target` to twice that. Marks among the launches, which the GPU comes past,
/// tell how fast it is. Launches are numbered from 1 on; times are nanoseconds. Not thread-safe.
class QueueDepth {
  public:
    static constexpr uint64_t kMost = 512;

    /// A share of a turn, and the number of GPUs that launches may be for: a thread may give all to one of them, and
    /// then all to the next.
    constexpr void set_target(uint64_t target, uint64_t gpus = 1) {
        target_ = target;
        gpus_ = gpus;
    }

    /// There are others from now on. `launched`: the last launch so far, and what is before it may be queued. The GPU
    /// is taken to be not much slower than it was the last time.
    void begin(uint64_t launched);
    /// The GPU has come past the mark behind this launch, later than `after` (0: that isn't known) and not later than
    /// `now`.
    void passed(uint64_t launch, uint64_t after, uint64_t now);

    /// A mark is due behind each so many launches.
    uint64_t step() const { return step_; }
    /// Number of the last launch that needn't wait.
    uint64_t allowed() const { return allowed_; }

  private:
    uint64_t target_ = 0, gpus_ = 1;
    uint64_t step_ = 1, allowed_ = 0;
    uint64_t last_ = 0, last_after_ = 0;  // mark that was passed, later than that; 0: none has been
};

}  // namespace cuslice::lease
