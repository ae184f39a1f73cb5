// SPDX-License-Identifier: Apache-2.0
#include "policy/budget/place_map.h"

#include "policy/base/table_memory.h"

namespace cuslice {

namespace {

// A program with few allocations has the first one alone; the others are large enough to share huge pages.
constexpr size_t kFirstPiece = 16 << 10, kPiece = 64 << 10;

}  // namespace

// Zeroed, and never given back.
void* PlaceMap::cut(size_t bytes) {
    if (piece_left_ < bytes) {
        const size_t size = piece_ ? kPiece : kFirstPiece;
        auto* more = static_cast<char*>(take_table_memory(size));
        if (!more)
            return nullptr;
        piece_ = more;
        piece_left_ = size;
    }
    void* const here = piece_;
    piece_ += bytes;
    piece_left_ -= bytes;
    return here;
}

PlaceMap::Region* PlaceMap::make_regions(uint64_t address) {
    std::atomic<Middle*>& top = tops_[address >> kTopBits];
    Middle* middle = top.load(std::memory_order_relaxed);
    if (!middle) {
        middle = static_cast<Middle*>(cut(sizeof(Middle)));
        if (!middle)
            return nullptr;
        top.store(middle, std::memory_order_release);
    }
    std::atomic<Region*>& place = middle->regions[address >> kMiddleBits & 255];
    Region* regions = place.load(std::memory_order_relaxed);
    if (regions)
        return regions;
    constexpr size_t kBytes = kRegions * sizeof(Region);
    regions = static_cast<Region*>(take_table_memory(kBytes));
    if (!regions)
        return nullptr;
    const uint64_t begin = address >> kMiddleBits << kMiddleBits;
    if (!rows_.push_back({reinterpret_cast<char*>(&regions->word), sizeof(Region), kRegions, begin, kRegionBits})) {
        give_back_table_memory(regions, kBytes);
        return nullptr;
    }
    place.store(regions, std::memory_order_release);
    return regions;
}

PlaceMap::Word* PlaceMap::make_leaf(uint64_t address, unsigned bits) {
    const size_t count = 1ull << (kRegionBits - bits);
    auto* leaf = static_cast<Word*>(cut(count * sizeof(Word)));
    const uint64_t begin = address >> kRegionBits << kRegionBits;
    const bool noted = leaf && rows_.push_back({reinterpret_cast<char*>(leaf), sizeof(Word), count, begin, bits});
    return noted ? leaf : nullptr;
}

PlaceMap::Word* PlaceMap::make(uint64_t address) {
    LockGuard lock(mutex_);
    Region* regions = make_regions(address);
    if (!regions)
        return nullptr;
    Region& region = regions[address >> kRegionBits & (kRegions - 1)];
    if (!(address & kInRegion))
        return &region.word;
    const bool coarse = !(address & ((1ull << kCoarseBits) - 1));
    if (!region.leaves[coarse].load(std::memory_order_relaxed)) {
        Word* const leaf = make_leaf(address, coarse ? kCoarseBits : kPageBits);
        if (!leaf)
            return nullptr;
        region.leaves[coarse].store(leaf, std::memory_order_release);
    }
    return find(address);
}

}  // namespace cuslice
