// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "policy/base/mutex.h"
#include "policy/budget/allocation.h"
#include "policy/budget/allocation_hash.h"
#include "policy/budget/place_map.h"

namespace cuslice {

// Address → allocation, for any number of live ones, from any thread. Where an address has a place of its own, its
// record is one word, which is written and taken without a lock. What doesn't fit there is in hash tables with a lock
// each: addresses that are no multiple of kUnit, a second allocation that begins in the same 4 KiB, one of 2 TiB or
// more, and one at whose address another one is being freed.
class AllocationTable {
  public:
    static constexpr uint64_t kUnit = Allocation::kUnit;

    // Records an allocation that the driver has just made. A record that is there for the same address belongs to a
    // free that is under way: the driver has the memory back already and handed it out again, and the freeing thread is
    // about to take its record. It finds it, and not the new one: see erase(). False if the kernel gave no memory to
    // grow into; nothing was recorded then.
    bool insert(const Allocation& allocation) {
        if (fits(allocation))
            if (Word* word = places_.find(allocation.address)) {
                uint64_t nothing = 0;
                if (word->compare_exchange_strong(nothing, pack(allocation), std::memory_order_acq_rel,
                                                  std::memory_order_relaxed)) [[likely]]
                    return true;
            }
        return insert_slowly(allocation);
    }

    // Says that erase(address) will follow soon, so that the cache line is on its way.
    void expect(uint64_t address) const {
        if (!has_place(address))
            return;
        if (const Word* word = places_.find(address))
            __builtin_prefetch(word, 1);
    }

    // After the driver has freed this address: removes and returns its record, the one that a newer record has
    // superseded if there are several; address 0 in the answer if there is none.
    Allocation erase(uint64_t address) {
        if (has_place(address))
            if (Word* word = places_.find(address)) {
                uint64_t now = word->load(std::memory_order_acquire);
                if (is_only(now, address) && word->compare_exchange_strong(now, 0, std::memory_order_acq_rel,
                                                                           std::memory_order_relaxed)) [[likely]]
                    return unpack(address, now);
            }
        return erase_slowly(address);
    }

    // The record of a live allocation; address 0 if there is none.
    Allocation find(uint64_t address) const;

    // Changes the kind of a live allocation. False if there is no record of it.
    bool change_kind(uint64_t address, uint8_t kind);

    // Removes every allocation of a context (or, for 0, none) and calls visit(allocation, argument) for each. Visits
    // must not call back into the table.
    void erase_context(uint16_t context, void (*visit)(const Allocation&, void*), void* argument);

    // Calls visit for every allocation: a moment's picture, not one instant's. Visits must not call back.
    void for_each(void (*visit)(const Allocation&, void*), void* argument) const;

  private:
    using Word = PlaceMap::Word;
    struct alignas(64) Shard {
        mutable Mutex mutex{LockRank::table};
        AllocationHash records CUSLICE_GUARDED_BY(mutex);
        std::atomic<bool> any{false};  // records; written under the lock
    };
    static constexpr size_t kShards = 64;

    // A word has where in its 4 KiB the allocation begins, that there is one, and that the shard may have more that
    // begin here. While it may, nobody writes a record into the word, so that one that is there is the oldest.
    static constexpr unsigned kOffsetShift = 32, kKindShift = 37, kGpuShift = 42, kContextShift = 48;
    static constexpr uint64_t kUnits = (1ull << kOffsetShift) - 1, kOffset = 7ull << kOffsetShift;
    static constexpr uint64_t kPresent = 1ull << 35, kMore = 1ull << 36;
    static_assert(kUnit << 3 == 1ull << PlaceMap::kPageBits);

    static uint64_t offset_of(uint64_t address) { return address / kUnit % 8 << kOffsetShift; }
    static bool has_place(uint64_t address) { return !(address & ~(PlaceMap::kEnd - kUnit)); }
    static bool fits(const Allocation& a) { return has_place(a.address) && a.bytes / kUnit <= kUnits; }
    static bool is_of(uint64_t word, uint64_t address) {
        return (word & (kOffset | kPresent)) == (offset_of(address) | kPresent);
    }
    static bool is_only(uint64_t word, uint64_t address) {
        return (word & (kOffset | kPresent | kMore)) == (offset_of(address) | kPresent);
    }
    static uint64_t pack(const Allocation& a) {
        return a.bytes / kUnit | offset_of(a.address) | kPresent | uint64_t{a.kind} << kKindShift |
               uint64_t{a.gpu} << kGpuShift | uint64_t{a.context} << kContextShift;
    }
    static Allocation unpack(uint64_t address, uint64_t word) {
        return {address, (word & kUnits) * kUnit, static_cast<uint16_t>(word >> kContextShift),
                static_cast<uint8_t>(word >> kGpuShift & 63), static_cast<uint8_t>(word >> kKindShift & 31)};
    }

    // The same one for all addresses that may share a word.
    Shard& shard_of(uint64_t address) const {
        return shards_[(address >> PlaceMap::kPageBits) * 0x9e3779b97f4a7c15ull >> 58];
    }
    Word* word_of(uint64_t address) const { return has_place(address) ? places_.find(address) : nullptr; }
    static uint64_t value_of(const Word* word) { return word ? word->load(std::memory_order_acquire) : 0; }
    // `word` is that of the 4 KiB from `begin` on.
    static Allocation unpack_in(uint64_t begin, uint64_t word) {
        return unpack(begin + ((word & kOffset) >> kOffsetShift) * kUnit, word);
    }
    bool insert_slowly(const Allocation& allocation);
    Allocation erase_slowly(uint64_t address);
    static bool insert_among(Shard& shard, Word& word, const Allocation& allocation) CUSLICE_REQUIRES(shard.mutex);
    static bool put(Shard& shard, const Allocation& allocation) CUSLICE_REQUIRES(shard.mutex);
    static bool take(Shard& shard, Word& word, uint64_t* now) CUSLICE_REQUIRES(shard.mutex);
    uint64_t take_of_context(Word& word, uint64_t begin, uint16_t context);

    PlaceMap places_;
    mutable Shard shards_[kShards];
};

}  // namespace cuslice
