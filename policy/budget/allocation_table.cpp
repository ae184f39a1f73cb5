#include "policy/budget/allocation_table.h"

#include "policy/base/table_memory.h"

namespace cuslice {

AllocationTable::Entry AllocationTable::pack(const Allocation& a) {
    return {a.address, std::uint64_t{a.context} << 48 | std::uint64_t{a.gpu} << 42 |
                           std::uint64_t{a.kind} << kKindShift | a.bytes / kUnit};
}

Allocation AllocationTable::unpack(const Entry& e) {
    return {e.address, (e.packed & (kSuperseded - 1)) * kUnit, static_cast<std::uint16_t>(e.packed >> 48),
            static_cast<std::uint8_t>(e.packed >> 42 & 63), static_cast<std::uint8_t>(e.packed >> kKindShift & 31)};
}

// The bits above the shard's own (58 and up) are spent; below them the product is well mixed from its middle on.
std::size_t AllocationTable::Shard::home(std::uint64_t address) const {
    return hash(address) >> 26 & (bucket_count - 1);
}

void AllocationTable::Shard::put(const Entry& entry) {
    for (std::size_t b = home(entry.address);; b = (b + 1) & (bucket_count - 1))
        for (Entry& place : buckets[b].entries)
            if (!place.address) {
                place = entry;
                count++;
                return;
            }
}

AllocationTable::Entry* AllocationTable::Shard::find(std::uint64_t address, std::size_t* bucket) const {
    if (!buckets || !address) return nullptr;
    Entry* found = nullptr;
    for (std::size_t b = home(address);; b = (b + 1) & (bucket_count - 1)) {
        for (Entry& entry : buckets[b].entries) {
            if (entry.address != address || (found && !(entry.packed & kSuperseded))) continue;
            *bucket = b;
            found = &entry;
            if (entry.packed & kSuperseded) return found;
        }
        if (!buckets[b].full()) return found;
    }
}

void AllocationTable::Shard::supersede(std::uint64_t address) {
    for (std::size_t b = home(address);; b = (b + 1) & (bucket_count - 1)) {
        for (Entry& entry : buckets[b].entries)
            if (entry.address == address) entry.packed |= kSuperseded;
        if (!buckets[b].full()) return;
    }
}

// The hole is filled from the bucket's end. If the bucket was full, an entry further on may be there only because it
// was: the first such entry moves here, and the hole is where that one was.
void AllocationTable::Shard::remove(Entry* hole, std::size_t bucket) {
    const std::size_t mask = bucket_count - 1;
    count--;
    for (;;) {
        Bucket& here = buckets[bucket];
        const bool was_full = here.full();
        Entry* last = &here.entries[3];
        while (!last->address) last--;
        *hole = *last;
        *last = {};
        if (!was_full) return;
        hole = nullptr;
        for (std::size_t b = (bucket + 1) & mask; !hole; b = (b + 1) & mask) {
            for (Entry& entry : buckets[b].entries)
                if (entry.address && ((b - home(entry.address)) & mask) >= ((b - bucket) & mask)) {
                    *last = entry;
                    hole = &entry;
                    bucket = b;
                    break;
                }
            if (!hole && !buckets[b].full()) return;
        }
    }
}

bool AllocationTable::Shard::grow() {
    const std::size_t more = bucket_count ? bucket_count * 2 : 32;
    auto* memory = static_cast<Bucket*>(take_table_memory(more * sizeof(Bucket)));
    if (!memory) return false;
    Bucket* old = buckets;
    const std::size_t old_count = bucket_count;
    __atomic_store_n(&buckets, memory, __ATOMIC_RELAXED);  // expect() looks without the lock, and only for a hint
    __atomic_store_n(&bucket_count, more, __ATOMIC_RELAXED);
    count = 0;
    for (std::size_t b = 0; b < old_count; b++)
        for (const Entry& entry : old[b].entries)
            if (entry.address) put(entry);
    give_back_table_memory(old, old_count * sizeof(Bucket));
    return true;
}

bool AllocationTable::insert(const Allocation& a) {
    Shard& shard = shard_of(a.address);
    LockGuard lock(shard.mutex);
    if ((shard.count + 1) * 4 > shard.bucket_count * 4 * 3 && !shard.grow() &&
        shard.count + 1 >= shard.bucket_count * 4)
        return false;
    shard.supersede(a.address);
    shard.put(pack(a));
    return true;
}

Allocation AllocationTable::erase(std::uint64_t address) {
    Shard& shard = shard_of(address);
    LockGuard lock(shard.mutex);
    std::size_t bucket = 0;
    Entry* entry = shard.find(address, &bucket);
    if (!entry) return {};
    const Allocation found = unpack(*entry);
    shard.remove(entry, bucket);
    return found;
}

Allocation AllocationTable::find(std::uint64_t address) const {
    const Shard& shard = shards_[hash(address) >> 58];
    LockGuard lock(shard.mutex);
    std::size_t bucket = 0;
    const Entry* entry = shard.find(address, &bucket);
    return entry ? unpack(*entry) : Allocation{};
}

bool AllocationTable::change_kind(std::uint64_t address, std::uint8_t kind) {
    Shard& shard = shard_of(address);
    LockGuard lock(shard.mutex);
    std::size_t bucket = 0;
    Entry* entry = shard.find(address, &bucket);
    if (!entry) return false;
    entry->packed = (entry->packed & ~(31ull << kKindShift)) | std::uint64_t{kind} << kKindShift;
    return true;
}

void AllocationTable::erase_context(std::uint16_t context, void (*visit)(const Allocation&, void*), void* argument) {
    if (!context) return;
    for (Shard& shard : shards_) {
        LockGuard lock(shard.mutex);
        for (std::size_t b = 0; b < shard.bucket_count; b++)
            for (std::size_t i = 0; i < 4;) {
                Entry& entry = shard.buckets[b].entries[i];
                if (!entry.address || entry.packed >> 48 != context) {
                    i++;
                    continue;
                }
                visit(unpack(entry), argument);
                shard.remove(&entry, b);  // may have moved another entry here: look again
            }
    }
}

void AllocationTable::for_each(void (*visit)(const Allocation&, void*), void* argument) const {
    for (const Shard& shard : shards_) {
        LockGuard lock(shard.mutex);
        for (std::size_t b = 0; b < shard.bucket_count; b++)
            for (const Entry& entry : shard.buckets[b].entries)
                if (entry.address) visit(unpack(entry), argument);
    }
}

}  // namespace cuslice
