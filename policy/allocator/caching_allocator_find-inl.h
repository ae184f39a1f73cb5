// SPDX-License-Identifier: Apache-2.0
// Looking up the block at an address, for others than frees.
#pragma once
#include "policy/allocator/caching_allocator.h"

namespace cuslice {

template <Backing B>
auto CachingAllocator<B>::find(Map& map, uint64_t address) -> Found {
    const Segment* segment = map.segment(address);
    if (!segment)
        return {};
    CachingAllocator* owner = &of(*segment->owner);
    if (Span* span = map.at(address).span) {
        const uint32_t index = span->index_of(address);
        if (index == Span::kNone)
            return {};
        const uint32_t word = span->word(index).load(std::memory_order_relaxed), requested = word & Span::kRequested;
        const uint64_t base = span->address_of(index);
        if (!(word & Span::kLive) || address - base >= requested)
            return {};
        return {base, requested, segment, owner};
    }
    const SegmentHeap::Used used = owner->heap_.find(segment, address);
    if (!used.address)
        return {};
    return {used.address, used.requested, segment, owner};
}

template <Backing B>
bool CachingAllocator<B>::mark(Map& map, uint64_t address) {
    const Found found = find(map, address);
    if (found.address != address || !found.owner)
        return false;
    if (Span* span = map.at(address).span) {
        auto& word = span->word(span->index_of(address));
        uint32_t live = word.load(std::memory_order_relaxed);
        do {
            if (!(live & Span::kLive))
                return false;
        } while (!word.compare_exchange_weak(live, live | Span::kMarked, std::memory_order_relaxed));
        return true;
    }
    return found.owner->heap_.mark(address);
}

}  // namespace cuslice
