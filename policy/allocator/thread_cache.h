// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "policy/allocator/batch.h"
#include "policy/allocator/owner_lock.h"
#include "policy/allocator/traffic.h"

namespace cuslice {

// A thread's small blocks of one class, last in, first out. It may hold `capacity` of them, which grows with its use:
// see ThreadCaches.
struct Magazine {
    uint16_t count = 0, capacity = 0;
    uint32_t bytes = 0;  // of a block
    SmallBlock* slots = nullptr;
};

// The large blocks that a thread has freed last, each as it was: for programs that free and allocate the same again.
// Few bytes, as blocks that are kept apart are not merged with what is free beside them.
class KeptBlocks {
  public:
    static constexpr unsigned kMax = 40;
    static constexpr uint64_t kMaxBytes = 4 << 20;

    // False if there is no room for it.
    bool add(Block* block) {
        if (count_ == kMax || block->bytes > limit_ - bytes_)
            return false;
        blocks_[count_++] = block;
        bytes_ += block->bytes;
        return true;
    }
    // One of exactly so many bytes, or null.
    Block* take(uint64_t bytes) {
        for (unsigned i = count_; i-- > 0;)
            if (blocks_[i]->bytes == bytes)
                return take_at(i);
        return nullptr;
    }
    Block* take_newest() { return count_ ? take_at(count_ - 1) : nullptr; }
    // The half of them, rounded up, that was freed first. Returns how many.
    unsigned take_older_half(Block** into) {
        const unsigned half = (count_ + 1) / 2;
        for (unsigned i = 0; i < half; i++)
            bytes_ -= (into[i] = blocks_[i])->bytes;
        std::copy(blocks_ + half, blocks_ + count_, blocks_);
        count_ -= half;
        return half;
    }
    KeptBlocks take_all() {
        const KeptBlocks all = *this;
        forget();
        return all;
    }
    void forget() { count_ = 0, bytes_ = 0; }

    uint64_t bytes() const { return bytes_; }
    // How many bytes it may hold.
    uint64_t limit() const { return limit_; }
    void set_limit(uint64_t bytes) { limit_ = bytes; }

  private:
    Block* take_at(unsigned i) {
        Block* block = blocks_[i];
        count_--;
        for (; i < count_; i++)
            blocks_[i] = blocks_[i + 1];
        bytes_ -= block->bytes;
        return block;
    }
    Block* blocks_[kMax];
    unsigned count_ = 0;
    uint64_t bytes_ = 0, limit_ = 0;
};

// Blocks in a magazine at most: 1 MiB of them, but 16 to 128.
constexpr unsigned most_in_magazine(unsigned size_class) {
    return static_cast<unsigned>(std::clamp<uint64_t>((1 << 20) / SizeClass::bytes(size_class), 16, 128));
}
constexpr unsigned kMagazineSlots = [] {
    unsigned sum = 0;
    for (unsigned c = 0; c < SizeClass::kCount; c++)
        sum += most_in_magazine(c);
    return sum;
}();

// One thread's part of one allocator: only that thread uses it, under its OwnerLock or the lock of ThreadCaches;
// whoever else wants what is in it has the lock of ThreadCaches and revokes the OwnerLock first.
class ThreadCache {
  public:
    ThreadCache() {
        SmallBlock* slots = slots_;
        for (unsigned c = 0; c < SizeClass::kCount; c++) {
            magazines[c].bytes = static_cast<uint32_t>(SizeClass::bytes(c));
            magazines[c].slots = slots;
            slots += most_in_magazine(c);
        }
    }
    uint64_t operations() const { return traffic.allocations.get() + traffic.frees.get(); }

    OwnerLock lock;
    BlockOwner* owner = nullptr;
    ThreadCache *next_of_owner = nullptr, *next_of_thread = nullptr;
    Magazine magazines[SizeClass::kCount];
    KeptBlocks kept;
    // Freed, and no fence yet: small blocks, and large ones of `kept.limit()` bytes at most.
    Batch *open = nullptr, *open_large = nullptr;
    OwnCount deferred;  // bytes in both
    // When this thread looked last there was no free block of so many bytes, and what it had deferred itself served.
    static constexpr uint64_t kNotKnown = ~0ull;
    uint64_t none_from = kNotKnown;
    Traffic traffic;
    // Under the lock of ThreadCaches:
    uint64_t granted = 0;          // bytes that it may hold in all magazines and of kept blocks
    uint64_t operations_seen = 0;  // when others looked whether it is idle
    unsigned shrunk_last = 0;      // the class that gave way to another
    bool demanded = false;         // by whoever revokes it now

  private:
    SmallBlock slots_[kMagazineSlots];
};

}  // namespace cuslice
