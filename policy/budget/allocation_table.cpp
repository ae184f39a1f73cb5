// SPDX-License-Identifier: Apache-2.0
#include "policy/budget/allocation_table.h"

namespace cuslice {

bool AllocationTable::put(Shard& shard, const Allocation& allocation) {
    if (!shard.records.insert(allocation))
        return false;
    shard.any.store(true, std::memory_order_relaxed);
    return true;
}

// With the word's shard locked, nobody else sets or clears kMore, or puts a record into the shard.
bool AllocationTable::insert_among(Shard& shard, Word& word, const Allocation& allocation) {
    uint64_t now = word.load(std::memory_order_acquire);
    for (;;) {
        if (now == kMore && shard.records.count() == 0) {
            word.store(now = 0, std::memory_order_release);
        } else if (now == 0 && fits(allocation)) {
            if (word.compare_exchange_weak(now, pack(allocation), std::memory_order_acq_rel))
                return true;
        } else if (now & kMore || word.compare_exchange_weak(now, now | kMore, std::memory_order_acq_rel)) {
            return put(shard, allocation);
        }
    }
}

bool AllocationTable::insert_slowly(const Allocation& allocation) {
    Word* word = nullptr;
    if (has_place(allocation.address)) {
        word = places_.make(allocation.address);
        if (!word)
            return false;
    }
    Shard& shard = shard_of(allocation.address);
    LockGuard lock(shard.mutex);
    return word ? insert_among(shard, *word, allocation) : put(shard, allocation);
}

// Takes the record out of a word in which nobody else has changed it. False if somebody has.
bool AllocationTable::take(Shard& shard, Word& word, uint64_t* now) {
    const uint64_t left = shard.records.count() != 0 ? *now & kMore : 0;
    return word.compare_exchange_weak(*now, left, std::memory_order_acq_rel);
}

Allocation AllocationTable::erase_slowly(uint64_t address) {
    Shard& shard = shard_of(address);
    Word* const word = word_of(address);
    uint64_t now = value_of(word);
    if (!is_of(now, address) && !shard.any.load(std::memory_order_relaxed))
        return {};
    LockGuard lock(shard.mutex);
    while (is_of(now, address))
        if (take(shard, *word, &now))
            return unpack(address, now);
    const Allocation found = shard.records.erase(address);
    shard.any.store(shard.records.count() != 0, std::memory_order_relaxed);
    return found;
}

Allocation AllocationTable::find(uint64_t address) const {
    if (const uint64_t now = value_of(word_of(address)); is_of(now, address))
        return unpack(address, now);
    const Shard& shard = shard_of(address);
    if (!shard.any.load(std::memory_order_relaxed))
        return {};
    LockGuard lock(shard.mutex);
    return shard.records.find(address);
}

bool AllocationTable::change_kind(uint64_t address, uint8_t kind) {
    Word* const word = word_of(address);
    uint64_t now = value_of(word);
    while (is_of(now, address)) {
        const uint64_t changed = (now & ~(31ull << kKindShift)) | uint64_t{kind} << kKindShift;
        if (word->compare_exchange_weak(now, changed, std::memory_order_acq_rel))
            return true;
    }
    Shard& shard = shard_of(address);
    LockGuard lock(shard.mutex);
    return shard.records.change_kind(address, kind);
}

// The word as it was; 0 if it isn't of this context.
uint64_t AllocationTable::take_of_context(Word& word, uint64_t begin, uint16_t context) {
    const auto is_its = [&](uint64_t now) { return now & kPresent && now >> kContextShift == context; };
    uint64_t now = word.load(std::memory_order_acquire);
    if (!is_its(now))
        return 0;
    Shard& shard = shard_of(begin);
    LockGuard lock(shard.mutex);
    while (is_its(now))
        if (take(shard, word, &now))
            return now;
    return 0;
}

void AllocationTable::erase_context(uint16_t context, void (*visit)(const Allocation&, void*), void* argument) {
    if (!context)
        return;
    places_.for_each([&](Word& word, uint64_t begin) {
        if (const uint64_t taken = take_of_context(word, begin, context))
            visit(unpack_in(begin, taken), argument);
    });
    for (Shard& shard : shards_) {
        LockGuard lock(shard.mutex);
        shard.records.erase_context(context, visit, argument);
        shard.any.store(shard.records.count() != 0, std::memory_order_relaxed);
    }
}

void AllocationTable::for_each(void (*visit)(const Allocation&, void*), void* argument) const {
    places_.for_each([&](const Word& word, uint64_t begin) {
        const uint64_t now = word.load(std::memory_order_acquire);
        if (now & kPresent)
            visit(unpack_in(begin, now), argument);
    });
    for (const Shard& shard : shards_) {
        LockGuard lock(shard.mutex);
        shard.records.for_each(visit, argument);
    }
}

}  // namespace cuslice
