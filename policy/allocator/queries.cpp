// What can be said of a caching allocator and of its blocks, and its end.
#include <algorithm>

#include "policy/allocator/caching_allocator.h"
#include "policy/base/cancellation.h"

namespace cuslice {

namespace {

Statistics& raise(Statistics& told, std::uint64_t allocated, std::uint64_t requested, std::uint64_t active,
                  std::uint64_t reserved) {
    told.allocated.peak = std::max(told.allocated.peak, allocated);
    told.requested.peak = std::max(told.requested.peak, requested);
    told.active.peak = std::max(told.active.peak, active);
    told.reserved.peak = std::max(told.reserved.peak, reserved);
    return told;
}

}  // namespace

// With the lock held, as are the others here. All that was freed is read first: so nothing is in it that was allocated
// after the rest was read, and the difference is never less than nothing.
Traffic CachingAllocator::total_traffic() const {
    Traffic total;
    for (const ThreadCache* cache = caches_; cache; cache = cache->next_of_owner) total.add_freed(cache->traffic);
    for (const ThreadCache* cache = caches_; cache; cache = cache->next_of_owner) total.add_taken(cache->traffic);
    total.add(traffic_);
    return total;
}

void CachingAllocator::note_peaks() {
    const std::uint64_t held = segments_.bytes(), deferred = queued_ + (open_ ? open_->bytes : 0);
    // No more can be out than is in use: mostly that says enough.
    const std::uint64_t used = held - segments_.free_bytes();
    if (used <= told_.active.peak && used <= deferred + std::min(told_.allocated.peak, told_.requested.peak)) {
        told_.reserved.peak = std::max(told_.reserved.peak, held);
        return;
    }
    const Traffic total = total_traffic();
    // Whatever threads say of themselves, no more than there is can be out.
    const std::uint64_t allocated = std::min(total.out(), held);
    raise(told_, allocated, std::min(total.requested_out(), allocated), std::min(allocated + deferred, held), held);
}

std::uint64_t CachingAllocator::unused() const {
    LockGuard lock(mutex_);
    const std::uint64_t there = segments_.bytes() - abandoned_;
    return there - std::min(total_traffic().out(), there);
}

std::uint64_t CachingAllocator::operations() const {
    LockGuard lock(mutex_);
    const Traffic total = total_traffic();
    return total.allocations.get() + total.frees.get();
}

Statistics CachingAllocator::statistics() {
    LockGuard lock(mutex_);
    note_peaks();
    const Traffic total = total_traffic();
    Statistics now = told_;
    const std::uint64_t held = segments_.bytes();
    now.allocated.allocated = total.allocated.get();
    now.allocated.current = std::min(total.out(), held);
    now.allocated.freed = now.allocated.allocated - now.allocated.current;
    now.requested.allocated = total.requested_allocated.get();
    now.requested.current = std::min(total.requested_out(), now.allocated.current);
    now.requested.freed = now.requested.allocated - now.requested.current;
    std::uint64_t deferred = queued_ + (open_ ? open_->bytes : 0);
    // A thread's own batch is read as it is filled: a moment's figure.
    for (const ThreadCache* cache = caches_; cache; cache = cache->next_of_owner) deferred += cache->deferred.get();
    now.active.current = std::min(now.allocated.current + deferred, held);
    now.active.allocated = now.allocated.allocated;
    now.active.freed = now.active.allocated - now.active.current;
    now.reserved.current = held;
    now.reserved.allocated = now.reserved.current + now.reserved.freed;
    raise(now, now.allocated.current, now.requested.current, now.active.current, now.reserved.current);
    now.allocations = total.allocations.get();
    now.frees = total.frees.get();
    now.syncs = syncs_.load(std::memory_order_relaxed);
    now.segments = segments_.count();
    now.largest_free = segments_.largest_free();
    now.own_memory = segments_.memory() + spans_.memory() + batches_.memory() + cache_memory_;
    return now;
}

void CachingAllocator::inspect(void (*segment)(const Segment&, void*), void (*block)(const Block&, void*),
                               void* argument) {
    LockGuard lock(mutex_);
    for (const Segment* at = segments_.first(); at; at = at->next) {
        segment(*at, argument);
        for (const Block* piece = at->first; piece; piece = piece->after) block(*piece, argument);
    }
}

CachingAllocator::Found CachingAllocator::find(AddressMap& map, std::uint64_t address) {
    const Segment* segment = map.segment(address);
    if (!segment) return {};
    if (Span* span = map.at(address).span) {
        const std::uint32_t index = span->index_of(address);
        if (index == Span::kNone) return {};
        const std::uint32_t word = span->word(index).load(std::memory_order_relaxed),
                            requested = word & Span::kRequested;
        const std::uint64_t base = span->address_of(index);
        if (!(word & Span::kLive) || address - base >= requested) return {};
        return {base, requested, segment, span->owner};
    }
    LockGuard lock(segment->owner->mutex_);
    const AddressMap::Here here = map.around(address);
    const Block* block = here.block;
    if (map.segment(address) != segment || !block || address - here.begin >= block->requested) return {};
    return {block->address, block->requested, segment, segment->owner};
}

bool CachingAllocator::holds(const AddressMap& map, std::uint64_t address, std::uint64_t bytes) {
    const Segment* segment = map.segment(address);
    if (!segment) return true;
    if (Span* span = map.at(address).span) {
        const std::uint32_t index = span->index_of(address);
        if (index == Span::kNone || !(span->word(index).load(std::memory_order_relaxed) & Span::kLive)) return false;
        const std::uint64_t room = SizeClass::bytes(span->size_class);
        return bytes <= room - (address - span->address_of(index));
    }
    const AddressMap::Here here = map.around(address);
    if (!here.block) return false;
    const std::uint64_t before = address - here.begin, size = here.block->bytes;
    return before < size && bytes <= size - before;
}

bool CachingAllocator::mark(AddressMap& map, std::uint64_t address) {
    const Found found = find(map, address);
    if (found.address != address || !found.owner) return false;
    if (Span* span = map.at(address).span) {
        auto& word = span->word(span->index_of(address));
        std::uint32_t live = word.load(std::memory_order_relaxed);
        do {
            if (!(live & Span::kLive)) return false;
        } while (!word.compare_exchange_weak(live, live | Span::kMarked, std::memory_order_relaxed));
        return true;
    }
    LockGuard lock(found.owner->mutex_);
    Block* block = map.at(address).block;
    if (!block || block->address != address) return false;
    return block->marked = true;
}

Statistics CachingAllocator::close() {
    Statistics done = statistics();
    // Not the lock of growing: whoever grows may be waiting for this context to have ended.
    LockGuard lock(mutex_);
    life_.fetch_add(1, std::memory_order_release);
    open_now_.store(false, std::memory_order_seq_cst);
    for (ThreadCache* cache = caches_; cache; cache = cache->next_of_owner) {
        const bool revoked = cache->lock.revoke();
        for (Magazine& magazine : cache->magazines) magazine.count = magazine.capacity = 0;
        cache->kept = {};
        cache->granted = 0;
        for (Batch** open : {&cache->open, &cache->open_large}) {
            if (*open) batches_.give_back(*open);
            *open = nullptr;
        }
        cache->deferred.add(0 - cache->deferred.get());
        if (revoked) cache->lock.restore();
    }
    if (open_) batches_.give_back(open_);
    open_ = nullptr;
    while (Batch* batch = oldest_) {
        if (batch->fence) backing_.drop_fence(backing_.self, batch->fence);
        oldest_ = batch->next;
        batches_.give_back(batch);
    }
    newest_ = nullptr;
    while (Segment* segment = segments_.first()) {
        for (Block* block = segment->first; block; block = block->after) {
            if (Span* span = block->state == Block::State::span ? map_->at(block->address).span : nullptr)
                spans_.forget(span);
            else if (block->state == Block::State::used)
                map_->clear(block);
        }
        map_->remove(segment->begin, segment->end);
        done.segments_given_back++;
        segments_.remove(segment);
    }
    spans_.forget_lists();
    reserved_.store(0, std::memory_order_relaxed);
    for (ThreadCache* cache = caches_; cache; cache = cache->next_of_owner) cache->traffic.reset();
    traffic_.reset();
    told_ = {};
    syncs_.store(0, std::memory_order_relaxed);
    for (Tally* tally : {&done.allocated, &done.requested, &done.active, &done.reserved}) {
        tally->freed = tally->allocated;
        tally->current = 0;
    }
    done.segments = done.largest_free = done.own_memory = 0;
    queued_ = abandoned_ = last_segment_ = exchanged_ = granted_ = 0;
    short_of_memory_ = turned_down_ = 0;
    return done;
}

}  // namespace cuslice
