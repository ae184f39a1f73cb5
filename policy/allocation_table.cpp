#include "policy/allocation_table.h"

#include <sys/mman.h>

#include <cerrno>

namespace cuslice {

namespace {

void* pages(std::size_t bytes) {
    const int saved_errno = errno;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = saved_errno;
    return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

Allocation AllocationTable::unpack(const Entry& entry) {
    return {entry.address, entry.bytes_kind_gpu >> 16, entry.context, static_cast<std::uint8_t>(entry.bytes_kind_gpu),
            static_cast<std::uint8_t>(entry.bytes_kind_gpu >> 8)};
}

// The bits above the shard's own (58 and up) are spent; below them the product is well mixed from its upper half on.
static std::size_t home(std::uint64_t hash, std::size_t capacity) { return (hash >> 26) & (capacity - 1); }

void AllocationTable::Shard::put(const Entry& entry) {
    std::size_t i = home(hash(entry.address), capacity);
    while (entries[i].address && entries[i].address != entry.address) i = (i + 1) & (capacity - 1);
    if (!entries[i].address) count++;
    entries[i] = entry;
}

bool AllocationTable::Shard::grow() {
    const std::size_t bigger = capacity ? capacity * 2 : 128;
    auto* memory = static_cast<Entry*>(pages(bigger * sizeof(Entry)));
    if (!memory) return false;
    Entry* old = entries;
    const std::size_t old_capacity = capacity;
    entries = memory;
    capacity = bigger;
    count = 0;
    for (std::size_t i = 0; i < old_capacity; i++)
        if (old[i].address) put(old[i]);
    if (old) munmap(old, old_capacity * sizeof(Entry));
    return true;
}

std::size_t AllocationTable::Shard::find(std::uint64_t address) const {
    if (!capacity) return 0;
    for (std::size_t i = home(hash(address), capacity); entries[i].address; i = (i + 1) & (capacity - 1))
        if (entries[i].address == address) return i;
    return capacity;
}

// Linear probing without tombstones: whatever follows the hole and would not be found across it moves into it.
void AllocationTable::Shard::remove_at(std::size_t hole) {
    const std::size_t mask = capacity - 1;
    for (std::size_t next = (hole + 1) & mask; entries[next].address; next = (next + 1) & mask) {
        const std::size_t wants = home(hash(entries[next].address), capacity);
        if (((next - wants) & mask) >= ((next - hole) & mask)) {
            entries[hole] = entries[next];
            hole = next;
        }
    }
    entries[hole] = Entry{};
    count--;
}

bool AllocationTable::insert(const Allocation& a) {
    Shard& shard = shard_of(a.address);
    LockGuard lock(shard.mutex);
    if ((shard.count + 1) * 4 > shard.capacity * 3 && !shard.grow() && shard.count + 1 >= shard.capacity) return false;
    shard.put({a.address, a.context, a.bytes << 16 | std::uint64_t{a.kind} << 8 | a.gpu});
    return true;
}

Allocation AllocationTable::erase(std::uint64_t address) {
    Shard& shard = shard_of(address);
    LockGuard lock(shard.mutex);
    const std::size_t i = shard.find(address);
    if (i == shard.capacity) return {};
    const Allocation found = unpack(shard.entries[i]);
    shard.remove_at(i);
    return found;
}

void AllocationTable::erase_context(std::uint64_t context, void (*visit)(const Allocation&, void*), void* argument) {
    if (!context) return;
    for (Shard& shard : shards_) {
        LockGuard lock(shard.mutex);
        for (std::size_t i = 0; i < shard.capacity;) {
            if (!shard.entries[i].address || shard.entries[i].context != context) {
                i++;
                continue;
            }
            visit(unpack(shard.entries[i]), argument);
            shard.remove_at(i);  // may have moved a later entry to i: look there again
        }
    }
}

void AllocationTable::for_each(void (*visit)(const Allocation&, void*), void* argument) const {
    for (const Shard& shard : shards_) {
        LockGuard lock(shard.mutex);
        for (std::size_t i = 0; i < shard.capacity; i++)
            if (shard.entries[i].address) visit(unpack(shard.entries[i]), argument);
    }
}

void AllocationTable::lock_all() {
    for (Shard& shard : shards_) shard.mutex.lock();
}
void AllocationTable::unlock_all() {
    for (Shard& shard : shards_) shard.mutex.unlock();
}

}  // namespace cuslice
