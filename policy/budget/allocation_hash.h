// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

#include "policy/budget/allocation.h"

namespace cuslice {

// Address → allocation, for any address. Entries are of 16 bytes and four share a bucket of one cache line, so that a
// look-up among millions costs one miss; its memory comes from the kernel and never from the host's malloc, which may
// be the very thing that called us. Not thread-safe.
class AllocationHash {
  public:
    // One that is there for the same address is superseded. False if the kernel gave no memory to grow into; nothing
    // was recorded then.
    bool insert(const Allocation& allocation);
    // Removes and returns the one that a newer one has superseded if there are several; address 0 in the answer if
    // there is none.
    Allocation erase(uint64_t address);
    Allocation find(uint64_t address) const;
    bool change_kind(uint64_t address, uint8_t kind);
    void erase_context(uint16_t context, void (*visit)(const Allocation&, void*), void* argument);
    void for_each(void (*visit)(const Allocation&, void*), void* argument) const;
    size_t count() const { return count_; }

  private:
    struct Entry {
        uint64_t address;
        uint64_t packed;  // context 16 bits, gpu 6, kind 5, superseded 1, units 36
    };
    // Filled from the front: an entry that finds the bucket of its hash full goes to the next that is not. So whoever
    // meets a bucket with room need look no further.
    struct alignas(64) Bucket {
        Entry entries[4];
        bool full() const { return entries[3].address != 0; }
    };
    static constexpr uint64_t kSuperseded = 1ull << 36;
    static constexpr unsigned kKindShift = 37;
    static Entry pack(const Allocation& allocation);
    static Allocation unpack(const Entry& entry);

    bool grow();
    size_t home(uint64_t address) const;
    void put(const Entry& entry);
    void supersede(uint64_t address);
    Entry* find(uint64_t address, size_t* bucket) const;  // a superseded one first
    void remove(Entry* entry, size_t bucket);

    Bucket* buckets_ = nullptr;
    size_t bucket_count_ = 0;  // a power of two
    size_t count_ = 0;
};

}  // namespace cuslice
