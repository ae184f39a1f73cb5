// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "policy/allocator/bins.h"
#include "policy/allocator/block.h"
#include "policy/allocator/growth.h"
#include "policy/allocator/records.h"

namespace cuslice {

// Segments cut into blocks: best fit, split at once, and free neighbours merged at once. Not thread-safe.
class Segments {
  public:
    // Adds a segment of `bytes` at `address`, of which [begin, end) is to be used. Null, and nothing changed, if the
    // kernel gives no memory for the records.
    Segment* add(uint64_t address, uint64_t bytes, uint64_t begin, uint64_t end, BlockOwner* owner, bool huge = false);
    // Forgets a segment, whatever is used of it.
    void remove(Segment* segment);
    // The same in two steps: a segment that was taken out counts for nothing, and nobody gets of it, until it is put
    // back as it was, or dropped for good. Neither needs memory.
    void take_out(Segment* segment);
    void put_back(Segment* segment);
    void drop(Segment* segment);

    // Where a block may lie. Of a huge segment only what suits a huge block, if its size is about that; or also what is
    // free in those that are in use; or in idle ones too, which can't be given back then for as long as it lives.
    enum class Place : uint8_t { proper, in_use, any };
    // `bytes` in whole units, on a boundary of `alignment`, a power of two and at least the unit. Null if no free block
    // is large enough, or the kernel gives no memory for the records.
    [[gnu::always_inline]] Block* take(uint64_t bytes, uint64_t alignment = SizeClass::kUnit,
                                       Place place = Place::any) {
        Block* const block = take_same(bytes, alignment);
        return block ? block : take_best(bytes, alignment, place);
    }
    // True if a block of `bytes` would be the first one in a segment.
    bool opens_idle(uint64_t bytes) const;
    // Bytes of blocks of `bytes` that idle segments have no place for, and one of all their bytes would have.
    uint64_t stranded(uint64_t bytes) const;
    // The block is free again.
    void give_back(Block* block) {
        free_bytes_ += block->bytes;
        block->state = Block::State::free;
        block->marked = false;
        if (!block->whole_segment())
            block = merge_free(block);
        bins_of(block).add(block);
    }
    // The block is nobody's any more and never will be.
    void abandon(Block* block);
    // A segment in which nothing but abandoned blocks is left, if there is one.
    Segment* worn_out() const;
    // Notes of every idle segment that it is, if it has not been noted since it was used.
    void note_idle(uint64_t now);

    Segment* first() const { return first_; }
    static bool idle(const Segment& segment) {
        return segment.first->state == Block::State::free && segment.first->whole_segment();
    }

    uint64_t bytes() const { return bytes_; }  // of all segments
    uint64_t free_bytes() const { return free_bytes_; }
    uint64_t largest_free() const;                       // bytes; within 3%
    uint64_t huge_bytes() const { return huge_bytes_; }  // of huge segments
    uint64_t idle_huge_bytes() const;
    unsigned count() const { return count_; }
    size_t memory() const { return blocks_.memory() + segments_.memory(); }

  private:
    // The best there is, wherever it may lie, if that is of just these bytes and at hand: for programs that allocate
    // what they have freed before. Null: it isn't.
    Block* take_same(uint64_t bytes, uint64_t alignment) {
        Bins& bins = GrowthPolicy::huge(bytes) ? idle_huge_ : shared_;
        Block* const block = bins.first_of(bytes);
        if (!block || block->bytes != bytes || (block->address & (alignment - 1)))
            return nullptr;
        bins.remove(block);
        now_used(block);
        return block;
    }
    Block* take_best(uint64_t bytes, uint64_t alignment, Place place);
    void now_used(Block* block) {
        block->state = Block::State::used;
        block->segment->idle_since = 0;
        free_bytes_ -= block->bytes;
    }
    // With its free neighbours, which are in no bin any more.
    Block* merge_free(Block* block);
    Block* split(Block* block, uint64_t bytes);
    void merge(Block* block, Block* after);
    Bins& bins_of(const Block* free) {
        const Segment& segment = *free->segment;
        return !segment.huge ? shared_ : free->whole_segment() ? idle_huge_ : huge_in_use_;
    }
    Block* best(uint64_t bytes, Place place) const;

    Bins shared_, huge_in_use_, idle_huge_;
    Records<Block> blocks_;
    Records<Segment> segments_;
    Segment* first_ = nullptr;
    uint64_t bytes_ = 0, free_bytes_ = 0, huge_bytes_ = 0;
    unsigned count_ = 0;
};

}  // namespace cuslice
