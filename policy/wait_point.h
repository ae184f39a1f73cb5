#pragma once
#include <atomic>
#include <cstdint>

namespace cuslice {

// Where threads wait for something to change that lies under a Mutex: they note now() under it, let go of it, and
// wait() unless it has changed since.
class WaitPoint {
  public:
    std::uint32_t now() const { return changes_.load(std::memory_order_relaxed); }
    // Until it has changed since, or for no reason.
    void wait(std::uint32_t since);
    // With the lock held.
    void changed();

  private:
    std::atomic<std::uint32_t> changes_{0};
};

}  // namespace cuslice
