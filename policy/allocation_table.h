#pragma once
#include <cstddef>
#include <cstdint>

#include "policy/mutex.h"

namespace cuslice {

// What is known of one live allocation. `kind` and `gpu` mean what the caller wants them to mean.
struct Allocation {
    std::uint64_t address = 0;  // 0: none
    std::uint64_t bytes = 0;    // as charged; below 2^48
    std::uint64_t context = 0;  // whose end frees it
    std::uint8_t gpu = 0;
    std::uint8_t kind = 0;
};

// Address → allocation, for any number of live ones, from any thread. Open addressing in shards with a lock each; its
// memory comes from the kernel and never from the host's malloc, which may be the very thing that called us. Nothing is
// ever given back at process end.
class AllocationTable {
  public:
    // False if the kernel gave no memory to grow into; nothing was recorded then.
    bool insert(const Allocation& allocation);

    // Removes and returns the allocation at this address; address 0 in the answer if there is none.
    Allocation erase(std::uint64_t address);

    // Removes every allocation of a context (or, for 0, none) and calls visit(allocation, argument) for each, without
    // locks held by this table on any other shard. Visits must not call back into the table.
    void erase_context(std::uint64_t context, void (*visit)(const Allocation&, void*), void* argument);

    // Calls visit for every allocation, a shard at a time: a moment's picture, not one instant's.
    void for_each(void (*visit)(const Allocation&, void*), void* argument) const;

    // Around fork(), so that no lock is held by a thread that the child does not have.
    void lock_all();
    void unlock_all();

  private:
    struct Entry {
        std::uint64_t address;
        std::uint64_t context;
        std::uint64_t bytes_kind_gpu;  // bytes << 16 | kind << 8 | gpu
    };
    struct alignas(64) Shard {
        mutable Mutex mutex;
        Entry* entries = nullptr;
        std::size_t capacity = 0;  // a power of two
        std::size_t count = 0;

        bool grow();
        void put(const Entry& entry);
        void remove_at(std::size_t index);
        std::size_t find(std::uint64_t address) const;  // capacity if absent
    };
    static constexpr std::size_t kShards = 64;

    static std::uint64_t hash(std::uint64_t address) { return (address >> 9) * 0x9e3779b97f4a7c15ull; }
    static Allocation unpack(const Entry& entry);
    Shard& shard_of(std::uint64_t address) { return shards_[hash(address) >> 58]; }

    Shard shards_[kShards];
};

}  // namespace cuslice
