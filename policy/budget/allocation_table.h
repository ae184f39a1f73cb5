#pragma once
#include <cstddef>
#include <cstdint>

#include "policy/base/mutex.h"

namespace cuslice {

// What is known of one live allocation. `context`, `gpu` and `kind` are the caller's numbers.
struct Allocation {
    std::uint64_t address = 0;  // 0: none
    std::uint64_t bytes = 0;    // whole units of kUnit; below 2^44
    std::uint16_t context = 0;  // whose end frees it; 0: none
    std::uint8_t gpu = 0;       // below 64
    std::uint8_t kind = 0;      // below 32
};

// Address → allocation, for any number of live ones, from any thread. A hash table in shards with a lock each. Entries
// are of 16 bytes and four share a bucket of one cache line, so that a look-up among millions costs one miss; its
// memory comes from the kernel and never from the host's malloc, which may be the very thing that called us.
class AllocationTable {
  public:
    static constexpr std::uint64_t kUnit = 512;

    // Records an allocation that the driver has just made. A record that is there for the same address belongs to a
    // free that is under way: the driver has the memory back already and handed it out again, and the freeing thread is
    // about to take its record. It finds it, and not the new one: see erase(). False if the kernel gave no memory to
    // grow into; nothing was recorded then.
    bool insert(const Allocation& allocation);

    // Says that erase(address) will follow soon, so that the cache line is on its way.
    void expect(std::uint64_t address) const CUSLICE_UNCHECKED {
        const Shard& shard = shards_[hash(address) >> 58];
        if (const Bucket* buckets = __atomic_load_n(&shard.buckets, __ATOMIC_RELAXED))
            __builtin_prefetch(
                buckets + (hash(address) >> 26 & (__atomic_load_n(&shard.bucket_count, __ATOMIC_RELAXED) - 1)), 1);
    }

    // After the driver has freed this address: removes and returns its record, the one that a newer record has
    // superseded if there are several; address 0 in the answer if there is none.
    Allocation erase(std::uint64_t address);

    // The record of a live allocation; address 0 if there is none.
    Allocation find(std::uint64_t address) const;

    // What is known of a live allocation has changed. False if there is no record of it.
    bool change_kind(std::uint64_t address, std::uint8_t kind);

    // Removes every allocation of a context (or, for 0, none) and calls visit(allocation, argument) for each, without
    // locks held by this table on any other shard. Visits must not call back into the table.
    void erase_context(std::uint16_t context, void (*visit)(const Allocation&, void*), void* argument);

    // Calls visit for every allocation, a shard at a time: a moment's picture, not one instant's.
    void for_each(void (*visit)(const Allocation&, void*), void* argument) const;

  private:
    struct Entry {
        std::uint64_t address;
        std::uint64_t packed;  // context 16 bits, gpu 6, kind 5, superseded 1, units 36
    };
    // Filled from the front: an entry that finds the bucket of its hash full goes to the next that is not. So whoever
    // meets a bucket with room need look no further.
    struct alignas(64) Bucket {
        Entry entries[4];
        bool full() const { return entries[3].address != 0; }
    };
    struct alignas(64) Shard {
        mutable Mutex mutex{LockRank::table};
        Bucket* buckets CUSLICE_GUARDED_BY(mutex) = nullptr;
        std::size_t bucket_count CUSLICE_GUARDED_BY(mutex) = 0;  // a power of two
        std::size_t count CUSLICE_GUARDED_BY(mutex) = 0;

        bool grow() CUSLICE_REQUIRES(mutex);
        std::size_t home(std::uint64_t address) const CUSLICE_REQUIRES(mutex);
        void put(const Entry& entry) CUSLICE_REQUIRES(mutex);
        void supersede(std::uint64_t address) CUSLICE_REQUIRES(mutex);
        Entry* find(std::uint64_t address, std::size_t* bucket) const
            CUSLICE_REQUIRES(mutex);  // a superseded one first
        void remove(Entry* entry, std::size_t bucket) CUSLICE_REQUIRES(mutex);
    };
    static constexpr std::size_t kShards = 64;

    static std::uint64_t hash(std::uint64_t address) { return (address >> 9) * 0x9e3779b97f4a7c15ull; }
    static constexpr std::uint64_t kSuperseded = 1ull << 36;
    static constexpr unsigned kKindShift = 37;
    static Entry pack(const Allocation& allocation);
    static Allocation unpack(const Entry& entry);
    Shard& shard_of(std::uint64_t address) { return shards_[hash(address) >> 58]; }

    Shard shards_[kShards];
};

}  // namespace cuslice
