// SPDX-License-Identifier: Apache-2.0
// The functions of CachingAllocator, for the .cpp that has it made for a backing.
#pragma once
#include <algorithm>
#include <utility>

#include "policy/allocator/caching_allocator.h"
#include "policy/allocator/caching_allocator_find-inl.h"
#include "policy/allocator/caching_allocator_reuse-inl.h"
#include "policy/allocator/segment_supply-inl.h"
#include "policy/base/cancellation.h"

namespace cuslice {

template <Backing B>
void CachingAllocator<B>::open(Map& map, const Options& options) {
    OwnerLock::prepare();
    map_ = &map;
    reuse_ = options.reuse;
    deferred_.open(options.reuse);
    heap_.open(map, options.preallocate);
    supply_.open(options.preallocate);
    choose_worth_reporting();
    life_.begin();
}

template <Backing B>
Statistics CachingAllocator<B>::close() {
    Statistics done = statistics();
    // Not the lock of growing: whoever grows may be waiting for this context to have ended.
    LockGuard threads(threads_.mutex());
    LockGuard deferred(deferred_.mutex());
    LockGuard heap(heap_.mutex());
    life_.end();
    threads_.close(deferred_);
    deferred_.close(backing_);
    done.segments_given_back += heap_.close();
    syncs_.store(0, std::memory_order_relaxed);
    done.end();
    return done;
}

template <Backing B>
void CachingAllocator<B>::report() {
    heap_.moved().reset();
    deferred_.moved().reset();
    threads_.moved().reset();
    // Two threads may count as one: the number only says whether there were few or many.
    reports_.store(reports_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    choose_worth_reporting();
    backing_.changed();
}

template <Backing B>
void CachingAllocator<B>::choose_worth_reporting() {
    const bool seldom = reports_.load(std::memory_order_relaxed) < kSeldom;
    const uint64_t least = seldom ? kWorthReporting : kWorthReporting * kOftenWorth;
    worth_reporting_ = std::max(least, reserved() / kShareWorthReporting);
}

// Null if the kernel gives no memory for one.
template <Backing B>
ThreadCache* CachingAllocator<B>::own_cache() {
    OwnCaches& own = own_caches_;
    for (ThreadCache** link = &own.first; *link; link = &(*link)->next_of_thread) {
        ThreadCache* cache = *link;
        if (cache->owner != this)
            continue;
        *link = cache->next_of_thread;  // to the front
        cache->next_of_thread = own.first;
        return own.begin_with(cache);
    }
    ThreadCache* cache = threads_.add();
    if (!cache)
        return nullptr;
    const bool first = !own.first;
    cache->next_of_thread = own.first;
    own.begin_with(cache);
    if (first)
        backing_.thread_began();
    return cache;
}

template <Backing B>
void CachingAllocator<B>::thread_ends() {
    while (ThreadCache* cache = own_caches_.first) {
        CachingAllocator& owner = of(*cache->owner);
        own_caches_.begin_with(cache->next_of_thread);
        owner.threads_.remove(cache);
        // One that was closed may be about to become another context's.
        if (owner.is_open())
            owner.report();
    }
}

template <Backing B>
uint64_t CachingAllocator<B>::allocate_large(uint64_t bytes) {
    if (backing_.wanted())
        help_out();
    const DeferCancellation uncancelled;
    if (bytes <= KeptBlocks::kMaxBytes) {
        if (const uint64_t address = from_kept(bytes))
            return address;
        // Before the lock where it has been of no use. What is free is looked at again once this thread's own blocks
        // don't serve.
        if (deferred_first(bytes))
            if (const uint64_t address = from_deferred(bytes))
                return address;
    }
    const Changing changing(*this);
    uint64_t used = 0;
    const uint64_t address = heap_.take_large(bytes, &used);
    if (address)
        note_peaks(used);
    return address;
}

template <Backing B>
uint64_t CachingAllocator<B>::allocate_large_slowly(uint64_t bytes, AllocationError* denied) {
    const DeferCancellation uncancelled;
    const Changing changing(*this);
    if (const uint64_t address = from_deferred(bytes))
        return address;
    SegmentHeap::Request request(bytes);
    if (!find_memory(&request, denied))
        return 0;
    note_peaks(request.used);
    return request.got.address;
}

template <Backing B>
uint64_t CachingAllocator<B>::allocate_small(uint64_t bytes, AllocationError* denied) {
    const DisableCancellation uncancelled;
    if (backing_.wanted())
        help_out();
    const Changing changing(*this);
    ThreadCache* cache = own_cache();
    // The thread may have used another allocator: its cache of this one is at hand again.
    if (const uint64_t address = from_magazine(bytes))
        return address;
    SegmentHeap::Request request(bytes);
    if (!heap_.take_ready(&request) && reuse_deferred(ReuseScope::passed)) {
        if (const uint64_t address = from_magazine(bytes))
            return address;
        heap_.take_ready(&request);
    }
    if (!request.got.address && !heap_.take(&request, SegmentHeap::Place::proper) && !find_memory(&request, denied))
        return 0;
    if (cache)
        threads_.refill(*cache, request.size_class);
    note_peaks(request.used);

    const uint64_t size = SizeClass::bytes(request.size_class);
    request.got.word->store(Span::kLive | static_cast<uint32_t>(bytes), std::memory_order_relaxed);
    if (cache && cache->lock.enter()) {
        cache->traffic.allocate(size, bytes);
        cache->lock.leave();
    } else {
        heap_.count_allocation(size, bytes);
    }
    return request.got.address;
}

// Tries the blocks that the GPU has passed, then a new segment, in the end all that is kept. Not inline, so that a
// hit saves no register.
template <Backing B>
[[gnu::noinline]] bool CachingAllocator<B>::find_memory(SegmentHeap::Request* request, AllocationError* denied) {
    const DisableCancellation uncancelled;  // the driver may be asked
    SegmentSupply<B>::forget_earlier();
    const bool large = request->need > SizeClass::kMax;
    if (reuse_deferred(large ? ReuseScope::large : ReuseScope::passed) &&
        heap_.take(request, SegmentHeap::Place::proper))
        return true;
    uint64_t refused = 0;
    for (auto grown = SegmentSupply<B>::Grown::again; grown == SegmentSupply<B>::Grown::again;) {
        grown = supply_.grow_beside_others(request, threads_.live(), &refused, denied);
        if (grown == SegmentSupply<B>::Grown::served)
            return true;
    }
    if (refused && denied->for_any_size())
        return false;

    supply_.begin_short();
    const bool found = find_where_short(request, refused, denied);
    supply_.end_short();
    return found;
}

// One thread at a time. `refused` bytes have been denied already.
template <Backing B>
bool CachingAllocator<B>::find_where_short(SegmentHeap::Request* request, uint64_t refused, AllocationError* denied) {
    LockGuard growing(supply_.growing());
    switch (supply_.find_where_short(request, threads_.live(), refused, denied)) {
        case SegmentSupply<B>::Found::served:
            return true;
        case SegmentSupply<B>::Found::failed:
            return false;
        case SegmentSupply<B>::Found::nothing:
            break;
    }
    flush_caches(true);
    return supply_.find_at_last(request, denied);
}

// Takes a block that this thread keeps, for KeptBlocks::kMaxBytes at most. 0 if it keeps none of the size.
template <Backing B>
uint64_t CachingAllocator<B>::from_kept(uint64_t bytes) {
    ThreadCache* cache = cache_at_hand();
    if (!cache || !cache->lock.enter())
        return 0;
    const uint64_t address = take_kept(*cache, bytes);
    cache->lock.leave();
    return address;
}

// A block of so many bytes out of the batch of large ones that this thread has filled itself, if the GPU has come past
// it: the thread keeps the others. 0 if it has none, or the GPU has not. The caller has a DeferCancellation.
template <Backing B>
uint64_t CachingAllocator<B>::from_deferred(uint64_t bytes) {
    ThreadCache* cache = cache_at_hand();
    const uint64_t life = life_.number();
    if (reuse_ == Reuse::strict || !cache || !cache->lock.enter())
        return 0;
    cache->none_from = ThreadCache::kNotKnown;
    Batch* batch = ThreadCaches::take_open(*cache, &ThreadCache::open_large);
    cache->lock.leave();
    if (!batch)
        return 0;
    const DisableCancellationState in_the_driver;
    if (!passed(batch, false)) {
        deferred_.queue(backing_, batch, life);
        return 0;
    }
    uint64_t address = 0;
    if (cache->lock.enter()) {
        // close() empties this cache once it has ended the life: blocks put in here before that go with it.
        if (life_.is(life)) {
            uint32_t left = 0;
            for (uint32_t i = 0; i < batch->count; i++)
                if (!cache->kept.add(Batch::large(batch->blocks[i])))
                    batch->blocks[left++] = batch->blocks[i];
            batch->count = left;
            if ((address = take_kept(*cache, bytes)))
                cache->none_from = bytes;
            // Empty, it is there for the next ones.
            if (!left && !cache->open_large) {
                batch->clear();
                cache->open_large = std::exchange(batch, nullptr);
            }
        }
        cache->lock.leave();
    }
    if (batch)
        deferred_.give_back(backing_, batch, life, false);
    return address;
}

template <Backing B>
auto CachingAllocator<B>::free_small_slowly(Span* span, uint64_t address, uint32_t requested, bool quiet) -> Freed {
    const DisableCancellation uncancelled;
    const Changing changing(*this);
    const unsigned size_class = span->size_class;
    const uint64_t size = SizeClass::bytes(size_class);
    const SmallBlock block{address, &span->word(span->index_of(address))};
    ThreadCache* cache = own_cache();
    if (quiet) {
        // The cache is at hand again, and may have room.
        if (cache && cache->lock.enter()) {
            Magazine& magazine = cache->magazines[size_class];
            const bool room = magazine.count < magazine.capacity;
            if (room) {
                magazine.slots[magazine.count++] = block;
                cache->traffic.free(size, requested);
            }
            cache->lock.leave();
            if (room)
                return Freed::done;
        }
        if (!cache || !threads_.put(*cache, block, size_class, requested))
            heap_.free_small(block, size_class, requested);
        return Freed::done;
    }

    // A full batch goes to those that wait for the GPU, and the next one begins with this block.
    DeferredFrees::Full full;
    Batch* next = cache ? deferred_.new_batch(size, &full.first) : nullptr;
    if (next && cache->lock.enter()) {
        full.batch = ThreadCaches::take_open(*cache, &ThreadCache::open);
        next->add(block, size_class);
        cache->open = next;
        cache->deferred.add(size);
        cache->traffic.free(size, requested);
        cache->lock.leave();
    } else {
        if (next)
            deferred_.give_back_record(next);
        if (!deferred_.defer(block, size_class, requested, &full))
            heap_.abandon(size);
    }
    queue_full(full);
    return Freed::done;
}

// Into this thread's own cache, if there is room for it: a block of KeptBlocks::kMaxBytes at most.
template <Backing B>
bool CachingAllocator<B>::free_in_thread(Block* block, bool quiet) {
    ThreadCache* cache = cache_at_hand();
    if (!cache) {
        const DisableCancellation uncancelled;
        if (!(cache = own_cache()))
            return false;
    }
    if (quiet)
        return threads_.keep(*cache, block);
    return reuse_ == Reuse::deferred && (threads_.defer(*cache, block) || defer_in_next(*cache, block));
}

template <Backing B>
bool CachingAllocator<B>::defer_in_next(ThreadCache& cache, Block* block) {
    const DisableCancellation uncancelled;
    const Changing changing(*this);
    DeferredFrees::Full full;
    const bool deferred = threads_.defer_in_next(cache, block, &full);
    queue_full(full);
    return deferred;
}

template <Backing B>
auto CachingAllocator<B>::free_large(Block* block, uint64_t address, int* error) -> Freed {
    bool quiet = false;
    if (!may_free(address, &quiet, error))
        return Freed::failed;
    const DeferCancellation uncancelled;
    // From here on nobody else can reach the block.
    if (!map_->claim(block, address))
        return Freed::invalid;
    const bool marked = block->marked;
    if (!marked && block->bytes <= KeptBlocks::kMaxBytes && free_in_thread(block, quiet))
        return Freed::done;
    const Changing changing(*this);
    if (marked && !backing_.forget(address)) {
        heap_.abandon_freed(block);
        supply_.give_back_worn_out();
        return Freed::done;
    }
    Fence fence = 0;
    const bool alone = !quiet && !marked && deferred_.worth_own_fence(*block);
    if (alone) {
        const DisableCancellation in_the_driver;
        quiet = backing_.past(address, &fence);
    }
    if (quiet) {
        heap_.free(block);
        return Freed::done;
    }
    DeferredFrees::Full full;
    if (!(alone ? deferred_.defer_alone(backing_, block, fence, &full) : deferred_.defer(block, &full)))
        heap_.abandon(block);
    queue_full(full);
    return Freed::done;
}

template <Backing B>
void CachingAllocator<B>::help_out() {
    if (backing_.capturing())
        return;
    const DisableCancellation uncancelled;
    flush_caches(false);
    supply_.give_back_idle(~0ull, ~0ull);
}

template <Backing B>
uint64_t CachingAllocator<B>::release_idle(uint64_t now, uint64_t long_enough, bool asleep) {
    const Changing changing(*this);
    if (asleep)
        flush_caches(false);
    heap_.note_idle(now);
    const uint64_t worn_out = supply_.give_back_worn_out();
    return worn_out + (now > long_enough ? supply_.give_back_idle(~0ull, now - long_enough) : 0);
}

template <Backing B>
bool CachingAllocator<B>::top_up(AllocationError* denied) {
    const Changing changing(*this);
    LockGuard growing(supply_.growing());
    return supply_.take_rest(denied);
}

template <Backing B>
uint64_t CachingAllocator<B>::unused() const {
    LockGuard threads(threads_.mutex());
    LockGuard heap(heap_.mutex());
    const uint64_t there = heap_.usable();
    return there - std::min(threads_.total().out(), there);
}

template <Backing B>
uint64_t CachingAllocator<B>::operations() const {
    LockGuard threads(threads_.mutex());
    const Traffic total = threads_.total();
    return total.allocations.get() + total.frees.get();
}

template <Backing B>
Statistics CachingAllocator<B>::statistics() {
    Statistics now;
    LockGuard threads(threads_.mutex());
    LockGuard heap(heap_.mutex());
    threads_.add_to(&now);
    heap_.add_to(&now);
    now.own_memory += deferred_.memory();
    now.syncs = syncs_.load(std::memory_order_relaxed);
    return now;
}

template <Backing B>
void CachingAllocator<B>::leave() {
    supply_.leave();
}

}  // namespace cuslice
