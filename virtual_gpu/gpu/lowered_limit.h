// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>
#include <string_view>

namespace cuslice {

// Where such a limit came from, for people.
inline constexpr std::string_view kSetByProgram = "the program itself (cuslice_set_slice)";

// Bytes that the program has set for itself on one GPU, within its limit, whether the GPU is open yet or not. ~0: none.
// Thread-safe.
class LoweredLimit {
  public:
    uint64_t bytes() const { return ~less_.load(std::memory_order_relaxed); }
    bool is_set() const { return less_.load(std::memory_order_relaxed) != 0; }
    void set(uint64_t bytes) { less_.store(~bytes, std::memory_order_relaxed); }

  private:
    std::atomic<uint64_t> less_{0};  // the complement, so that all is zero at first
};

}  // namespace cuslice
