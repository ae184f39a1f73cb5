// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>

namespace cuslice {

// Lets threads sleep until something happens again, which is counted. Whoever waits reads now(), looks whether there is
// anything to wait for, and then waits until the count is another one: so nothing that happens in between is missed,
// and no lock is held by anybody. Threads of one process only.
class EventCount {
  public:
    uint32_t now() const { return count_.load(std::memory_order_seq_cst); }
    // Wakes everybody who waits; without any, it costs two atomic operations.
    void happened();
    void wait(uint32_t seen);
    // The same, for so many nanoseconds at most, and less than a second. It may return early.
    void wait_for(uint32_t seen, uint32_t nanoseconds);

  private:
    std::atomic<uint32_t> count_{0}, waiting_{0};
};

}  // namespace cuslice
