#include "policy/allocator/segments.h"

namespace cuslice {

Segment* Segments::add(std::uint64_t address, std::uint64_t bytes, std::uint64_t begin, std::uint64_t end,
                       CachingAllocator* owner) {
    Segment* segment = segments_.take();
    Block* block = segment ? blocks_.take() : nullptr;
    if (!block) {
        if (segment) segments_.give_back(segment);
        return nullptr;
    }
    *segment = {address, bytes, 0, owner, begin, end, 0, block, nullptr, first_};
    block->address = begin;
    block->bytes = end - begin;
    block->segment = segment;
    if (first_) first_->previous = segment;
    first_ = segment;
    bytes_ += bytes;
    free_bytes_ += end - begin;
    count_++;
    bins_.add(block);
    return segment;
}

void Segments::remove(Segment* segment) {
    bins_.remove(segment->first);
    bytes_ -= segment->bytes;
    free_bytes_ -= segment->end - segment->begin;
    count_--;
    if (segment->next) segment->next->previous = segment->previous;
    (segment->previous ? segment->previous->next : first_) = segment->next;
    blocks_.give_back(segment->first);
    segments_.give_back(segment);
}

void Segments::forget(Segment* segment) {
    Block* whole = segment->first;
    const auto take_out = [&](Block* block) {
        if (block->state == Block::State::free)
            bins_.remove(block);
        else
            free_bytes_ += block->bytes;
    };
    take_out(whole);
    while (Block* second = whole->after) {
        take_out(second);
        merge(whole, second);
    }
    bins_.add(whole);
    remove(segment);
}

// The first `bytes` of a block that is in no bin stay with it; the rest is a new block in no bin.
Block* Segments::split(Block* block, std::uint64_t bytes) {
    Block* rest = blocks_.take();
    if (!rest) return nullptr;
    rest->address = block->address + bytes;
    rest->bytes = block->bytes - bytes;
    rest->segment = block->segment;
    rest->before = block;
    rest->after = block->after;
    if (rest->after) rest->after->before = rest;
    block->after = rest;
    block->bytes = bytes;
    return rest;
}

namespace {
std::uint64_t bytes_of(const Block* neighbour) { return neighbour ? std::uint64_t{neighbour->bytes} : 0; }
}  // namespace

Block* Segments::take(std::uint64_t bytes, std::uint64_t alignment) {
    const std::uint64_t slack = alignment ? alignment - SizeClass::kUnit : 0;
    Block* block = bins_.best(bytes + slack);
    if (!block) return nullptr;
    bins_.remove(block);
    if (const std::uint64_t before = alignment ? (alignment - block->address % alignment) % alignment : 0) {
        Block* rest = split(block, before);
        bins_.add(block);
        if (!rest) return nullptr;
        block = rest;
    }
    if (block->bytes > bytes) {
        // Beside the smaller neighbour, so that the rest is merged with the larger one once that is freed.
        const bool at_end = !alignment && bytes_of(block->after) < bytes_of(block->before);
        Block* second = split(block, at_end ? block->bytes - bytes : bytes);
        if (second) bins_.add(at_end ? block : second);  // otherwise the block is larger than it need be
        if (second && at_end) block = second;
    }
    block->state = Block::State::used;
    block->segment->idle_since = 0;
    free_bytes_ -= block->bytes;
    return block;
}

// `after` is given back; neither is in a bin.
void Segments::merge(Block* block, Block* after) {
    block->bytes += after->bytes;
    block->after = after->after;
    if (block->after) block->after->before = block;
    blocks_.give_back(after);
}

void Segments::give_back(Block* block) {
    free_bytes_ += block->bytes;
    block->state = Block::State::free;
    block->marked = false;
    if (Block* after = block->after; after && after->state == Block::State::free) {
        bins_.remove(after);
        merge(block, after);
    }
    if (Block* before = block->before; before && before->state == Block::State::free) {
        bins_.remove(before);
        merge(before, block);
        block = before;
    }
    bins_.add(block);
}

void Segments::retire(Block* block) {
    block->state = Block::State::retired;
    block->segment->retired += block->bytes;
}

Segment* Segments::worn_out() const {
    for (Segment* segment = first_; segment; segment = segment->next) {
        bool used = !segment->retired;
        for (const Block* block = segment->first; block && !used; block = block->after)
            used = block->state != Block::State::free && block->state != Block::State::retired;
        if (!used) return segment;
    }
    return nullptr;
}

void Segments::note_idle(std::uint64_t now) {
    for (Segment* segment = first_; segment; segment = segment->next)
        if (!segment->idle_since && idle(*segment)) segment->idle_since = now;
}

}  // namespace cuslice
