// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

#include "policy/allocator/block.h"
#include "policy/allocator/size_class.h"

namespace cuslice {

// The free blocks of any size, so that the best for a request is found at once: lists by size, 32 to a doubling, and a
// bit for each list that has any. Within a list, whose blocks are within 3% of each other, the first few are compared.
// Not thread-safe.
class Bins {
  public:
    void add(Block* block) {
        // One that was handed out as it was comes back to the same list.
        if (const uint64_t bytes = block->bytes; block->binned != bytes) {
            block->bin = static_cast<uint16_t>(bin_of(bytes));
            block->binned = bytes;
        }
        const unsigned bin = block->bin;
        block->previous = nullptr;
        block->next = first_[bin];
        if (block->next)
            block->next->previous = block;
        first_[bin] = block;
        rows_[bin / kColumns] |= 1u << bin % kColumns;
        filled_ |= 1ull << bin / kColumns;
    }
    void remove(Block* block) {
        const unsigned bin = block->bin;
        if (block->next)
            block->next->previous = block->previous;
        (block->previous ? block->previous->next : first_[bin]) = block->next;
        block->previous = block->next = nullptr;
        if (first_[bin])
            return;
        rows_[bin / kColumns] &= ~(1u << bin % kColumns);
        if (!rows_[bin / kColumns])
            filled_ &= ~(1ull << bin / kColumns);
    }

    // The block that was added last of those of about so many bytes; null if there is none.
    Block* first_of(uint64_t bytes) const { return first_[bin_of(bytes)]; }
    // The best block of at least `bytes`, or null. It stays in its list.
    Block* best(uint64_t bytes) const {
        unsigned bin = bin_of(bytes);
        if (Block* block = best_in(bin, bytes))
            return block;
        // All blocks of any later list are large enough.
        bin++;
        unsigned row = bin / kColumns;
        if (row >= kRows)
            return nullptr;
        uint32_t columns = rows_[row] & ~0u << bin % kColumns;
        if (!columns) {
            const uint64_t rows = row + 1 < kRows ? filled_ & ~0ull << (row + 1) : 0;
            if (!rows)
                return nullptr;
            row = static_cast<unsigned>(std::countr_zero(rows));
            columns = rows_[row];
        }
        return smallest_in(row * kColumns + static_cast<unsigned>(std::countr_zero(columns)));
    }

    // Bytes of the largest, or of one that is as large but for 3%; 0 if there is none.
    uint64_t largest() const {
        if (!filled_)
            return 0;
        const auto row = static_cast<unsigned>(std::bit_width(filled_)) - 1;
        const auto column = static_cast<unsigned>(std::bit_width(rows_[row])) - 1;
        uint64_t most = 0;
        int compared = 0;
        for (const Block* block = first_[row * kColumns + column]; block && compared < kMaxCompared; compared++) {
            most = std::max<uint64_t>(most, block->bytes);
            block = block->next;
        }
        return most;
    }

  private:
    static constexpr unsigned kColumns = 32, kRows = 36;
    static constexpr int kMaxCompared = 16;

    static unsigned bin_of(uint64_t bytes) {
        const uint64_t units = bytes / SizeClass::kUnit;
        if (units < kColumns)
            return static_cast<unsigned>(units);
        const unsigned row = static_cast<unsigned>(std::bit_width(units)) - 5;  // 32 units are row 1, column 0
        if (row >= kRows)
            return kRows * kColumns - 1;
        return row * kColumns + static_cast<unsigned>(units >> (row - 1)) % kColumns;
    }
    Block* best_in(unsigned bin, uint64_t bytes) const {
        Block* best = nullptr;
        uint64_t least = ~0ull;
        int compared = 0;
        for (Block* block = first_[bin]; block; block = block->next) {
            const uint64_t size = block->bytes;
            if (size == bytes)
                return block;
            if (size > bytes && size < least) {
                best = block;
                least = size;
            }
            if (best && ++compared >= kMaxCompared)
                break;
        }
        return best;
    }
    Block* smallest_in(unsigned bin) const { return best_in(bin, 0); }

    Block* first_[kRows * kColumns] = {};
    uint32_t rows_[kRows] = {};
    uint64_t filled_ = 0;
};

}  // namespace cuslice
