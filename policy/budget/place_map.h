// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "policy/base/mutex.h"
#include "policy/base/page_vector.h"

namespace cuslice {

// A word for each place where an allocation may begin, for 48 bits of addresses: a tree whose lowest level is coarse
// where addresses are. One on a boundary of 2 MiB has a word in its region, one on a boundary of 64 KiB in a leaf of
// 32, and all others that begin in the same 4 KiB have one together, in a leaf of 512. So an allocation costs 32 bytes
// to 4 KiB of host memory by itself, and 8 where they are small and many. Words are 0 at first, and stay where they
// are. Reads take no lock. Thread-safe.
class PlaceMap {
  public:
    using Word = std::atomic<uint64_t>;
    static constexpr uint64_t kEnd = 1ull << 48;
    static constexpr unsigned kPageBits = 12;

    // Null where no word has been made yet. `address` is below kEnd.
    Word* find(uint64_t address) const {
        const Middle* middle = tops_[address >> kTopBits].load(std::memory_order_acquire);
        if (!middle)
            return nullptr;
        Region* regions = middle->regions[address >> kMiddleBits & 255].load(std::memory_order_acquire);
        if (!regions)
            return nullptr;
        Region& region = regions[address >> kRegionBits & (kRegions - 1)];
        if (!(address & kInRegion))
            return &region.word;
        const bool coarse = !(address & ((1ull << kCoarseBits) - 1));
        Word* leaf = region.leaves[coarse].load(std::memory_order_acquire);
        return leaf ? leaf + ((address & kInRegion) >> (coarse ? kCoarseBits : kPageBits)) : nullptr;
    }

    // Null if the kernel gives no memory.
    Word* make(uint64_t address);

    // Calls visit(word, where it begins) for every word that has been made.
    template <typename Visit>
    void for_each(Visit visit) const {
        LockGuard lock(mutex_);
        for (const Row& row : rows_)
            for (size_t i = 0; i < row.count; i++)
                visit(*reinterpret_cast<Word*>(row.first + i * row.stride), row.begin + (uint64_t{i} << row.bits));
    }

  private:
    static constexpr unsigned kTopBits = 39, kMiddleBits = 31, kRegionBits = 21, kCoarseBits = 16;
    static constexpr size_t kRegions = 1 << (kMiddleBits - kRegionBits);
    static constexpr uint64_t kInRegion = (1ull << kRegionBits) - 1;

    struct alignas(32) Region {
        Word word;
        std::atomic<Word*> leaves[2];  // by pages of 4 KiB, and of 64
    };
    struct Middle {
        std::atomic<Region*> regions[256];
    };
    // Words that lie in a row.
    struct Row {
        char* first;
        size_t stride, count;  // bytes between them; how many
        uint64_t begin;
        unsigned bits;  // of the addresses between two
    };

    Region* make_regions(uint64_t address) CUSLICE_REQUIRES(mutex_);
    Word* make_leaf(uint64_t address, unsigned bits) CUSLICE_REQUIRES(mutex_);
    void* cut(size_t bytes) CUSLICE_REQUIRES(mutex_);

    std::atomic<Middle*> tops_[kEnd >> kTopBits]{};
    mutable Mutex mutex_{LockRank::places};
    PageVector<Row> rows_ CUSLICE_GUARDED_BY(mutex_);
    char* piece_ CUSLICE_GUARDED_BY(mutex_) = nullptr;  // leaves are cut from it
    size_t piece_left_ CUSLICE_GUARDED_BY(mutex_) = 0;
};

}  // namespace cuslice
