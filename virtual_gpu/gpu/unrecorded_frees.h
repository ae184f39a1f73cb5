// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>

namespace cuslice {

/// Memory of a GPU that has no record and is part of the driver's footprint: allocations of a pool that is gone, or of
/// another process. Its free makes the footprint smaller. Thread-safe.
class UnrecordedFrees {
  public:
    /// There is such memory from now on.
    void watch() {
        watched_.store(true, std::memory_order_relaxed);
        any_watched_.store(true, std::memory_order_relaxed);
    }
    bool watched() const { return watched_.load(std::memory_order_relaxed); }
    /// True if any GPU has some: for whoever would have to ask the driver which one it is.
    static bool any_watched() { return any_watched_.load(std::memory_order_relaxed); }

  private:
    std::atomic<bool> watched_{false};
    static constinit std::atomic<bool> any_watched_;
};

}  // namespace cuslice
