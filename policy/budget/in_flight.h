// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>

namespace cuslice {

// How many operations of one kind are between their beginning and their end, and how many there have been, in one word:
// whoever compares two figures of which such an operation changes one first and the other later can tell whether any
// came between. Lock-free and safe from any thread.
class InFlight {
  public:
    void begin() { state_.fetch_add(kOneMore + 1, std::memory_order_acquire); }
    void end() { state_.fetch_sub(1, std::memory_order_release); }

    uint64_t snapshot() const { return state_.load(std::memory_order_acquire); }
    // True if none was under way at the snapshot, and none has begun since.
    bool settled(uint64_t since) const { return since % kOneMore == 0 && snapshot() == since; }

  private:
    static constexpr uint64_t kOneMore = 1ull << 32;
    alignas(64) std::atomic<uint64_t> state_{0};
};

}  // namespace cuslice
