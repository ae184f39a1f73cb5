// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>

#include "policy/base/mutex.h"
#include "policy/budget/allocation_table.h"

namespace cuslice {

// Attributes of some blocks beyond their place: a number for CU_POINTER_ATTRIBUTE_BUFFER_ID, made when somebody asks
// for it, and whether other processes may hold the block's memory. Kept for as long as the block lives. The map is
// that of the block's allocator: CachingAllocator::Map. Thread-safe.
class BlockAttributes {
  public:
    // A number that no other allocation has or had; 0 if there is no memory to note it in. The block is of the context.
    template <typename Map>
    uint64_t buffer_id(Map& map, uint64_t block, uint16_t context) {
        LockGuard lock(mutex_);
        return note(map, block, context, 0);
    }
    // False if there is no memory to note it in.
    template <typename Map>
    bool exported(Map& map, uint64_t block, uint16_t context) {
        LockGuard lock(mutex_);
        return note(map, block, context, kExported) != 0;
    }
    // False if the block's memory is not this process's alone.
    bool forget(uint64_t block) { return !(attributes_.erase(block).kind & kExported); }

    // The context has ended, and its blocks with it: there may be others at their addresses.
    void context_ended(uint16_t context) {
        LockGuard lock(mutex_);
        attributes_.erase_context(
            context, [](const Allocation&, void*) {}, nullptr);
    }

  private:
    static constexpr uint8_t kExported = 1;
    // Far from the driver's own numbers, which count up from a small one.
    static constexpr uint64_t kFirst = 1ull << 60;

    template <typename Map>
    uint64_t note(Map& map, uint64_t block, uint16_t context, uint8_t kind) CUSLICE_REQUIRES(mutex_) {
        Allocation known = attributes_.erase(block);
        if (!known.address)
            known = {block, ++last_ * AllocationTable::kUnit, context, 0, 0};
        known.kind |= kind;
        if (!attributes_.insert(known))
            return 0;
        if (!Map::Allocator::mark(map, block)) {
            attributes_.erase(block);
            return 0;
        }
        return kFirst + known.bytes / AllocationTable::kUnit;
    }
    Mutex mutex_{LockRank::block_attributes};
    AllocationTable attributes_;  // `bytes` is the number
    uint64_t last_ CUSLICE_GUARDED_BY(mutex_) = 0;
};

}  // namespace cuslice
