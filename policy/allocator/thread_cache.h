#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "policy/allocator/backing.h"
#include "policy/allocator/owner_lock.h"
#include "policy/allocator/span.h"

namespace cuslice {

class CachingAllocator;

// Freed blocks that a GPU may still be using, until a fence has been passed.
struct Batch {
    static constexpr unsigned kMax = 124;
    static constexpr std::uint64_t kMaxBytes = 1 << 20;  // of a thread's small blocks

    Batch* next = nullptr;
    Fence fence = 0;  // 0: none could be made yet
    std::uint32_t count = 0;
    std::uint32_t classes = 0;  // a bit for each class of the small blocks, and kLarge
    std::uint64_t bytes = 0;
    std::uint64_t number = 0;  // in the order in which batches came to wait; 0: it doesn't yet
    // A small block, with its class in the bits that are 0 in every address, or a larger one's Block instead of the
    // word.
    struct Deferred {
        std::uint64_t address;
        std::uintptr_t word;
    };
    static constexpr std::uint32_t kLarge = 1u << 31;
    static_assert(SizeClass::kCount <= SizeClass::kUnit && SizeClass::kCount < 31);
    Deferred blocks[kMax];

    void add(const SmallBlock& block, unsigned size_class) {
        blocks[count++] = {block.address | size_class, reinterpret_cast<std::uintptr_t>(block.word)};
        classes |= 1u << size_class;
        bytes += SizeClass::bytes(size_class);
    }
    void add(Block* block) {
        blocks[count++] = {block->address, reinterpret_cast<std::uintptr_t>(block) | 1};
        classes |= kLarge;
        bytes += block->bytes;
    }
    void clear() { count = classes = 0, bytes = number = 0; }
    // In one of its blocks; it has one.
    std::uint64_t address() const { return blocks[0].address; }
    static Block* large(const Deferred& deferred) {
        return deferred.word & 1 ? reinterpret_cast<Block*>(deferred.word - 1) : nullptr;
    }
    static SmallBlock small(const Deferred& deferred) {
        return {deferred.address & ~(SizeClass::kUnit - 1),
                reinterpret_cast<std::atomic<std::uint32_t>*>(deferred.word)};
    }
    static unsigned size_class(const Deferred& small) { return small.address % SizeClass::kUnit; }
};

// A count that one thread writes and any thread reads.
class OwnCount {
  public:
    OwnCount() = default;
    OwnCount(const OwnCount& other) : value_(other.get()) {}
    void add(std::uint64_t n) { value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_release); }
    void reset() { value_.store(0, std::memory_order_relaxed); }
    std::uint64_t get() const { return value_.load(std::memory_order_acquire); }

  private:
    std::atomic<std::uint64_t> value_{0};
};

// What a thread, or the allocator itself, has handed out and taken back.
struct Traffic {
    OwnCount allocated, freed;                      // bytes
    OwnCount requested_allocated, requested_freed;  // bytes
    OwnCount allocations, frees;

    void allocate(std::uint64_t bytes, std::uint64_t requested) {
        allocated.add(bytes);
        requested_allocated.add(requested);
        allocations.add(1);
    }
    void free(std::uint64_t bytes, std::uint64_t requested) {
        freed.add(bytes);
        requested_freed.add(requested);
        frees.add(1);
    }
    void reset() {
        for (OwnCount* count : {&allocated, &freed, &requested_allocated, &requested_freed, &allocations, &frees})
            count->reset();
    }
    void add_taken(const Traffic& other) {
        allocated.add(other.allocated.get());
        requested_allocated.add(other.requested_allocated.get());
        allocations.add(other.allocations.get());
    }
    void add_freed(const Traffic& other) {
        freed.add(other.freed.get());
        requested_freed.add(other.requested_freed.get());
        frees.add(other.frees.get());
    }
    void add(const Traffic& other) { add_freed(other), add_taken(other); }

    // Bytes that are out. Of what threads count for themselves also what came and went while it was added up.
    std::uint64_t out() const { return allocated.get() - freed.get(); }
    std::uint64_t requested_out() const { return requested_allocated.get() - requested_freed.get(); }
};

// A thread's small blocks of one class, last in, first out. It may hold `capacity` of them, which grows with its use:
// see CachingAllocator::grant.
struct Magazine {
    std::uint16_t count = 0, capacity = 0;
    SmallBlock* slots = nullptr;
};

// The large blocks that a thread has freed last, each as it was: for programs that free and allocate the same again.
// Few bytes, as blocks that are kept apart are not merged with what is free beside them.
class KeptBlocks {
  public:
    static constexpr unsigned kMax = 40;
    static constexpr std::uint64_t kMaxBytes = 4 << 20;

    // False if there is no room for it.
    bool add(Block* block) {
        if (count_ == kMax || block->bytes > limit_ - bytes_) return false;
        blocks_[count_++] = block;
        bytes_ += block->bytes;
        return true;
    }
    // One of exactly so many bytes, or null.
    Block* take(std::uint64_t bytes) {
        for (unsigned i = count_; i-- > 0;)
            if (blocks_[i]->bytes == bytes) return take_at(i);
        return nullptr;
    }
    Block* take_newest() { return count_ ? take_at(count_ - 1) : nullptr; }
    // The half of them, rounded up, that was freed first. Returns how many.
    unsigned take_older_half(Block** into) {
        const unsigned half = (count_ + 1) / 2;
        for (unsigned i = 0; i < half; i++) bytes_ -= (into[i] = blocks_[i])->bytes;
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

    std::uint64_t bytes() const { return bytes_; }
    // How many bytes it may hold.
    std::uint64_t limit() const { return limit_; }
    void set_limit(std::uint64_t bytes) { limit_ = bytes; }

  private:
    Block* take_at(unsigned i) {
        Block* block = blocks_[i];
        count_--;
        for (; i < count_; i++) blocks_[i] = blocks_[i + 1];
        bytes_ -= block->bytes;
        return block;
    }
    Block* blocks_[kMax];
    unsigned count_ = 0;
    std::uint64_t bytes_ = 0, limit_ = 0;
};

// Blocks in a magazine at most: 1 MiB of them, but 16 to 128.
constexpr unsigned most_in_magazine(unsigned size_class) {
    return static_cast<unsigned>(std::clamp<std::uint64_t>((1 << 20) / SizeClass::bytes(size_class), 16, 128));
}
constexpr unsigned kMagazineSlots = [] {
    unsigned sum = 0;
    for (unsigned c = 0; c < SizeClass::kCount; c++) sum += most_in_magazine(c);
    return sum;
}();

// One thread's part of one allocator: only that thread uses it, under its OwnerLock or the allocator's lock; whoever
// else wants what is in it has the allocator's lock and revokes the OwnerLock first.
class ThreadCache {
  public:
    ThreadCache() {
        SmallBlock* slots = slots_;
        for (unsigned c = 0; c < SizeClass::kCount; c++) {
            magazines[c].slots = slots;
            slots += most_in_magazine(c);
        }
    }
    std::uint64_t operations() const { return traffic.allocations.get() + traffic.frees.get(); }

    OwnerLock lock;
    CachingAllocator* owner = nullptr;
    ThreadCache *next_of_owner = nullptr, *next_of_thread = nullptr;
    Magazine magazines[SizeClass::kCount];
    KeptBlocks kept;
    // Freed, and no fence yet: small blocks, and large ones of `kept.limit()` bytes at most.
    Batch *open = nullptr, *open_large = nullptr;
    OwnCount deferred;  // bytes in both
    // When this thread looked last there was no free block of so many bytes, and what it had deferred itself served.
    static constexpr std::uint64_t kNotKnown = ~0ull;
    std::uint64_t none_from = kNotKnown;
    Traffic traffic;
    // Under the allocator's lock:
    std::uint64_t granted = 0;          // bytes that it may hold in all magazines and of kept blocks
    std::uint64_t operations_seen = 0;  // when others looked whether it is idle
    unsigned shrunk_last = 0;           // the class that gave way to another
    bool demanded = false;              // by whoever revokes it now

  private:
    SmallBlock slots_[kMagazineSlots];
};

}  // namespace cuslice
