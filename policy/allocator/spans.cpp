// SPDX-License-Identifier: Apache-2.0
#include "policy/allocator/spans.h"

#include <new>

#include "policy/base/table_memory.h"

namespace cuslice {

void Spans::link(Span* span) {
    Span*& first = with_free_[span->size_class];
    span->previous = nullptr;
    span->next = first;
    if (first)
        first->previous = span;
    first = span;
}

void Spans::unlink(Span* span) {
    if (span->next)
        span->next->previous = span->previous;
    (span->previous ? span->previous->next : with_free_[span->size_class]) = span->next;
}

// Records are of a class for good: whoever looks at one that has just been released finds a span of that class.
Span* Spans::take_record(unsigned size_class) {
    if (Span* span = records_[size_class]) {
        records_[size_class] = span->next;
        return span;
    }
    constexpr size_t kChunk = 64 << 10;
    const size_t bytes = Span::record_bytes(size_class);
    if (fresh_left_ < bytes) {
        auto* chunk = static_cast<char*>(take_table_memory(kChunk));
        if (!chunk)
            return nullptr;
        fresh_ = chunk;  // the rest of the old one is less than a record: lost
        fresh_left_ = kChunk;
        memory_ += kChunk;
    }
    char* memory = fresh_;
    fresh_ += bytes;
    fresh_left_ -= bytes;
    return new (memory) Span;
}

// All blocks are free. Threads that take their first ones get them by turns, so the first word of each line comes
// first: as long as a thread takes and frees the same block, nobody else writes to its line.
void Spans::fill(Span& span) {
    const uint32_t on_line = static_cast<uint32_t>(Span::kLine) / span.word_bytes;
    uint32_t next = Span::kNone;
    const auto put_first = [&](uint32_t index) {
        span.word(index).store(next, std::memory_order_relaxed);
        next = index;
    };
    for (uint32_t i = span.count; i-- > 0;)
        if (i % on_line)
            put_first(i);
    for (uint32_t i = span.count; i-- > 0;)
        if (i % on_line == 0)
            put_first(i);
    span.first_free = static_cast<uint16_t>(next);
    span.free_count = span.count;
}

bool Spans::make(unsigned size_class, BlockOwner* owner, Segments::Place place) {
    Span* span = take_record(size_class);
    if (!span)
        return false;
    const uint64_t bytes = SizeClass::span_bytes(size_class);
    Block* block = segments_.take(bytes, SizeClass::kGranule, place);
    if (!block) {
        span->next = records_[size_class];
        records_[size_class] = span;
        return false;
    }
    block->state = Block::State::span;
    span->address = block->address;
    span->owner = owner;
    span->block = block;
    span->size_class = static_cast<uint16_t>(size_class);
    span->count = static_cast<uint16_t>(SizeClass::blocks(size_class));
    span->block_bytes = static_cast<uint32_t>(SizeClass::bytes(size_class));
    span->reciprocal = SizeClass::reciprocal(size_class);
    span->word_bytes = Span::word_bytes_of(size_class);
    fill(*span);
    map_->set(span);
    bytes_ += bytes;
    free_bytes_ += bytes;
    link(span);
    return true;
}

unsigned Spans::take(unsigned size_class, SmallBlock* into, unsigned most) {
    unsigned taken = 0;
    while (taken < most) {
        Span* span = with_free_[size_class];
        if (!span)
            break;
        for (; taken < most && span->free_count; taken++) {
            const uint32_t index = span->first_free;
            auto& word = span->word(index);
            span->first_free = static_cast<uint16_t>(word.load(std::memory_order_relaxed));
            word.store(Span::kNone, std::memory_order_relaxed);
            span->free_count--;
            into[taken] = {span->address_of(index), &word};
        }
        if (!span->free_count)
            unlink(span);
    }
    free_bytes_ -= taken * SizeClass::bytes(size_class);
    return taken;
}

void Spans::give_back(uint64_t address) {
    Span* span = map_->at(address).span;
    // Where a small block is there is a span. NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage)
    const uint32_t index = span->index_of(address);
    span->word(index).store(span->free_count ? span->first_free : Span::kNone, std::memory_order_relaxed);
    span->first_free = static_cast<uint16_t>(index);
    if (span->free_count++ == 0)
        link(span);
    free_bytes_ += SizeClass::bytes(span->size_class);
    // One of each class is kept, or the next allocation would make it again.
    const bool only = !span->previous && !span->next;
    if (span->free_count == span->count && !only)
        release(span);
}

void Spans::release(Span* span) {
    const uint64_t bytes = SizeClass::span_bytes(span->size_class);
    unlink(span);
    map_->clear(span->address, bytes);
    bytes_ -= bytes;
    free_bytes_ -= bytes;
    span->next = records_[span->size_class];
    records_[span->size_class] = span;
    segments_.give_back(span->block);
}

void Spans::forget(Span* span) {
    map_->clear(span->address, SizeClass::span_bytes(span->size_class));
    span->next = records_[span->size_class];
    records_[span->size_class] = span;
}

void Spans::forget_lists() {
    for (Span*& first : with_free_)
        first = nullptr;
    bytes_ = free_bytes_ = 0;
}

bool Spans::trim() {
    bool any = false;
    for (Span* first : with_free_) {
        for (Span *span = first, *next; span; span = next) {
            next = span->next;
            if (span->free_count != span->count)
                continue;
            release(span);
            any = true;
        }
    }
    return any;
}

}  // namespace cuslice
