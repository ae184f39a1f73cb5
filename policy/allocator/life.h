// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>

namespace cuslice {

// Current life of an allocator, by its number. An allocator is opened for a context and closed with it, as often as
// one comes. A thread that was in the driver meanwhile sees by the number that what it had taken out is no more.
//
// Ends only with the locks of all of the allocator's parts held: whoever has one of them, and has seen that it lives,
// may rely on it until it gives the lock back.
class Life {
  public:
    uint64_t number() const { return number_.load(std::memory_order_acquire); }
    bool is_open() const { return open_.load(std::memory_order_acquire); }
    // True if the life of this number has not ended.
    bool is(uint64_t number) const { return number_.load(std::memory_order_acquire) == number && is_open(); }

    void begin() {
        number_.fetch_add(1, std::memory_order_relaxed);
        open_.store(true, std::memory_order_release);
    }
    void end() {
        number_.fetch_add(1, std::memory_order_release);
        open_.store(false, std::memory_order_seq_cst);
    }

  private:
    std::atomic<uint64_t> number_{0};
    std::atomic<bool> open_{false};
};

}  // namespace cuslice
