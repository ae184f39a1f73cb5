// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <bit>
#include <cstdint>

namespace cuslice {

// Sizes of which the program has exported blocks. A block that others may hold is never used again, and what is left of
// its segment can't be given back until all of it is free; so the next ones of such a size come from the driver, each
// by itself. Thread-safe.
class ExportedSizes {
  public:
    void add(uint64_t bytes) { sizes_.fetch_or(bit(bytes), std::memory_order_relaxed); }
    bool has(uint64_t bytes) const {
        const uint64_t sizes = sizes_.load(std::memory_order_relaxed);
        return sizes && sizes & bit(bytes);
    }

  private:
    // Four steps to a doubling, as small blocks are rounded; what is of 1 MiB and more is one size, as it varies.
    static constexpr uint64_t bit(uint64_t bytes) {
        constexpr uint64_t kMin = 511, kLarge = 1 << 20;
        if (bytes >= kLarge)
            return 1ull << 63;
        const uint64_t last = (bytes - 1) | kMin;
        const uint64_t log = static_cast<uint64_t>(std::bit_width(last)) - 1;
        const uint64_t step = last >> (log - 2) & 3;
        return 1ull << ((log - 8) * 4 + step);
    }
    std::atomic<uint64_t> sizes_{0};
};

}  // namespace cuslice
