// SPDX-License-Identifier: Apache-2.0
#include "policy/allocator/segments.h"

#include <algorithm>

#include "policy/allocator/growth.h"

namespace cuslice {

Segment* Segments::add(uint64_t address, uint64_t bytes, uint64_t begin, uint64_t end, BlockOwner* owner, bool huge) {
    Segment* segment = segments_.take();
    Block* block = segment ? blocks_.take() : nullptr;
    if (!block) {
        if (segment)
            segments_.give_back(segment);
        return nullptr;
    }
    *segment = {address, bytes, 0, owner, begin, end, 0, huge, block};
    block->address = begin;
    block->bytes = end - begin;
    block->segment = segment;
    put_back(segment);
    return segment;
}

void Segments::remove(Segment* segment) {
    take_out(segment);
    drop(segment);
}

void Segments::put_back(Segment* segment) {
    segment->previous = nullptr;
    segment->next = first_;
    if (first_)
        first_->previous = segment;
    first_ = segment;
    bytes_ += segment->bytes;
    if (segment->huge)
        huge_bytes_ += segment->bytes;
    count_++;
    for (Block* block = segment->first; block; block = block->after) {
        if (block->state != Block::State::free)
            continue;
        free_bytes_ += block->bytes;
        bins_of(block).add(block);
    }
}

void Segments::take_out(Segment* segment) {
    bytes_ -= segment->bytes;
    if (segment->huge)
        huge_bytes_ -= segment->bytes;
    count_--;
    if (segment->next)
        segment->next->previous = segment->previous;
    (segment->previous ? segment->previous->next : first_) = segment->next;
    for (Block* block = segment->first; block; block = block->after) {
        if (block->state != Block::State::free)
            continue;
        free_bytes_ -= block->bytes;
        bins_of(block).remove(block);
    }
}

void Segments::drop(Segment* segment) {
    while (Block* block = segment->first) {
        segment->first = block->after;
        blocks_.give_back(block);
    }
    segments_.give_back(segment);
}

// The first `bytes` of a block that is in no bin stay with it; the rest is a new block in no bin.
Block* Segments::split(Block* block, uint64_t bytes) {
    Block* rest = blocks_.take();
    if (!rest)
        return nullptr;
    rest->address = block->address + bytes;
    rest->bytes = block->bytes - bytes;
    rest->segment = block->segment;
    rest->before = block;
    rest->after = block->after;
    if (rest->after)
        rest->after->before = rest;
    block->after = rest;
    block->bytes = bytes;
    block->noted = 0;  // others may lie in the rest
    return rest;
}

namespace {
uint64_t bytes_of(const Block* neighbour) { return neighbour ? uint64_t{neighbour->bytes} : 0; }
}  // namespace

Block* Segments::best(uint64_t bytes, Place place) const {
    if (GrowthPolicy::huge(bytes))
        if (Block* block = idle_huge_.best(bytes); block && GrowthPolicy::suits(block->bytes, bytes))
            return block;
    if (Block* block = shared_.best(bytes))
        return block;
    if (place == Place::proper)
        return nullptr;
    if (Block* block = huge_in_use_.best(bytes))
        return block;
    return place == Place::any ? idle_huge_.best(bytes) : nullptr;
}

Block* Segments::take_best(uint64_t bytes, uint64_t alignment, Place place) {
    const uint64_t inside = alignment - 1;
    Block* block = best(bytes, place);
    if (!block)
        return nullptr;
    uint64_t spare = block->bytes - bytes;
    if (((0 - block->address) & inside) > spare) [[unlikely]] {
        // The best for its size has no room on a boundary; one that is larger by a boundary's distance has.
        block = best(bytes + alignment - SizeClass::kUnit, place);
        if (!block)
            return nullptr;
        spare = block->bytes - bytes;
    }
    bins_of(block).remove(block);
    if (spare) {
        // Beside the smaller neighbour, so that the rest is merged with the larger one once that is freed.
        const bool at_end = bytes_of(block->after) < bytes_of(block->before);
        const uint64_t before = at_end ? spare - ((block->address + spare) & inside) : (0 - block->address) & inside;
        Block* rest = before < spare ? split(block, before + bytes) : nullptr;
        if (rest)
            bins_of(rest).add(rest);  // otherwise the block is larger than it need be
        if (before) {
            Block* free = block;
            block = split(free, before);
            bins_of(free).add(free);
            if (!block)
                return nullptr;
        }
    }
    now_used(block);
    return block;
}

bool Segments::opens_idle(uint64_t bytes) const {
    const Block* block = best(bytes, Place::proper);
    return block && block->whole_segment();
}

uint64_t Segments::stranded(uint64_t bytes) const {
    uint64_t all = 0, blocks = 0;
    for (const Segment* segment = first_; segment; segment = segment->next) {
        if (!idle(*segment))
            continue;
        all += segment->bytes;
        blocks += segment->bytes / bytes;
    }
    return (all / bytes - blocks) * bytes;
}

// `after` is given back; neither is in a bin.
void Segments::merge(Block* block, Block* after) {
    block->bytes += after->bytes;
    block->after = after->after;
    if (block->after)
        block->after->before = block;
    blocks_.give_back(after);
}

Block* Segments::merge_free(Block* block) {
    if (Block* after = block->after; after && after->state == Block::State::free) {
        bins_of(after).remove(after);
        merge(block, after);
    }
    if (Block* before = block->before; before && before->state == Block::State::free) {
        bins_of(before).remove(before);
        merge(before, block);
        block = before;
    }
    return block;
}

void Segments::abandon(Block* block) {
    block->state = Block::State::abandoned;
    block->segment->abandoned += block->bytes;
}

Segment* Segments::worn_out() const {
    for (Segment* segment = first_; segment; segment = segment->next) {
        bool used = !segment->abandoned;
        for (const Block* block = segment->first; block && !used; block = block->after)
            used = block->state != Block::State::free && block->state != Block::State::abandoned;
        if (!used)
            return segment;
    }
    return nullptr;
}

uint64_t Segments::largest_free() const {
    return std::max({shared_.largest(), huge_in_use_.largest(), idle_huge_.largest()});
}

uint64_t Segments::idle_huge_bytes() const {
    uint64_t bytes = 0;
    for (const Segment* segment = first_; segment; segment = segment->next)
        if (segment->huge && idle(*segment))
            bytes += segment->bytes;
    return bytes;
}

void Segments::note_idle(uint64_t now) {
    for (Segment* segment = first_; segment; segment = segment->next)
        if (!segment->idle_since && idle(*segment))
            segment->idle_since = now;
}

}  // namespace cuslice
