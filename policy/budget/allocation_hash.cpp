// SPDX-License-Identifier: Apache-2.0
#include "policy/budget/allocation_hash.h"

#include <cstddef>
#include <cstdint>

#include "policy/base/table_memory.h"

namespace cuslice {

AllocationHash::Entry AllocationHash::pack(const Allocation& a) {
    return {a.address, uint64_t{a.context} << 48 | uint64_t{a.gpu} << 42 | uint64_t{a.kind} << kKindShift |
                           a.bytes / Allocation::kUnit};
}

Allocation AllocationHash::unpack(const Entry& e) {
    return {e.address, (e.packed & (kSuperseded - 1)) * Allocation::kUnit, static_cast<uint16_t>(e.packed >> 48),
            static_cast<uint8_t>(e.packed >> 42 & 63), static_cast<uint8_t>(e.packed >> kKindShift & 31)};
}

// The product is well mixed from its middle on.
size_t AllocationHash::home(uint64_t address) const {
    return (address >> 4) * 0x9e3779b97f4a7c15ull >> 26 & (bucket_count_ - 1);
}

void AllocationHash::put(const Entry& entry) {
    for (size_t b = home(entry.address);; b = (b + 1) & (bucket_count_ - 1))
        for (Entry& place : buckets_[b].entries)
            if (!place.address) {
                place = entry;
                count_++;
                return;
            }
}

AllocationHash::Entry* AllocationHash::find(uint64_t address, size_t* bucket) const {
    if (!buckets_ || !address)
        return nullptr;
    Entry* found = nullptr;
    for (size_t b = home(address);; b = (b + 1) & (bucket_count_ - 1)) {
        for (Entry& entry : buckets_[b].entries) {
            if (entry.address != address || (found && !(entry.packed & kSuperseded)))
                continue;
            *bucket = b;
            found = &entry;
            if (entry.packed & kSuperseded)
                return found;
        }
        if (!buckets_[b].full())
            return found;
    }
}

void AllocationHash::supersede(uint64_t address) {
    for (size_t b = home(address);; b = (b + 1) & (bucket_count_ - 1)) {
        for (Entry& entry : buckets_[b].entries)
            if (entry.address == address)
                entry.packed |= kSuperseded;
        if (!buckets_[b].full())
            return;
    }
}

// The hole is filled from the bucket's end. If the bucket was full, an entry further on may be there only because it
// was: the first such entry moves here, and the hole is where that one was.
void AllocationHash::remove(Entry* hole, size_t bucket) {
    const size_t mask = bucket_count_ - 1;
    count_--;
    for (;;) {
        Bucket& here = buckets_[bucket];
        const bool was_full = here.full();
        Entry* last = &here.entries[3];
        while (!last->address)
            last--;
        *hole = *last;
        *last = {};
        if (!was_full)
            return;
        hole = nullptr;
        for (size_t b = (bucket + 1) & mask; !hole; b = (b + 1) & mask) {
            for (Entry& entry : buckets_[b].entries)
                if (entry.address && ((b - home(entry.address)) & mask) >= ((b - bucket) & mask)) {
                    *last = entry;
                    hole = &entry;
                    bucket = b;
                    break;
                }
            if (!hole && !buckets_[b].full())
                return;
        }
    }
}

bool AllocationHash::grow() {
    const size_t more = bucket_count_ ? bucket_count_ * 2 : 32;
    auto* memory = static_cast<Bucket*>(take_table_memory(more * sizeof(Bucket)));
    if (!memory)
        return false;
    Bucket* old = buckets_;
    const size_t old_count = bucket_count_;
    buckets_ = memory;
    bucket_count_ = more;
    count_ = 0;
    for (size_t b = 0; b < old_count; b++)
        for (const Entry& entry : old[b].entries)
            if (entry.address)
                put(entry);
    give_back_table_memory(old, old_count * sizeof(Bucket));
    return true;
}

bool AllocationHash::insert(const Allocation& a) {
    const bool crowded = (count_ + 1) * 4 > bucket_count_ * 4 * 3;
    if (crowded && !grow() && count_ + 1 >= bucket_count_ * 4)
        return false;
    supersede(a.address);
    put(pack(a));
    return true;
}

Allocation AllocationHash::erase(uint64_t address) {
    size_t bucket = 0;
    Entry* entry = find(address, &bucket);
    if (!entry)
        return {};
    const Allocation found = unpack(*entry);
    remove(entry, bucket);
    return found;
}

Allocation AllocationHash::find(uint64_t address) const {
    size_t bucket = 0;
    const Entry* entry = find(address, &bucket);
    return entry ? unpack(*entry) : Allocation{};
}

bool AllocationHash::change_kind(uint64_t address, uint8_t kind) {
    size_t bucket = 0;
    Entry* entry = find(address, &bucket);
    if (!entry)
        return false;
    entry->packed = (entry->packed & ~(31ull << kKindShift)) | uint64_t{kind} << kKindShift;
    return true;
}

void AllocationHash::erase_context(uint16_t context, void (*visit)(const Allocation&, void*), void* argument) {
    for (size_t b = 0; b < bucket_count_; b++)
        for (size_t i = 0; i < 4;) {
            Entry& entry = buckets_[b].entries[i];
            if (!entry.address || entry.packed >> 48 != context) {
                i++;
                continue;
            }
            visit(unpack(entry), argument);
            remove(&entry, b);  // may have moved another entry here: look again
        }
}

void AllocationHash::for_each(void (*visit)(const Allocation&, void*), void* argument) const {
    for (size_t b = 0; b < bucket_count_; b++)
        for (const Entry& entry : buckets_[b].entries)
            if (entry.address)
                visit(unpack(entry), argument);
}

}  // namespace cuslice
