// SPDX-License-Identifier: Apache-2.0
// Blocks that wait for the GPU, and when they can be had again.
#pragma once
#include <algorithm>
#include <utility>

#include "policy/allocator/caching_allocator.h"
#include "policy/base/cancellation.h"

namespace cuslice {

// A batch that was filled is the time to see what has become of the earlier ones. If it is the first, it may not have
// to wait itself.
template <Backing B>
void CachingAllocator<B>::queue_full(const DeferredFrees::Full& full) {
    if (!full.batch)
        return;
    const DisableCancellation uncancelled;
    const uint64_t life = life_.number();
    if (full.first && passed(full.batch, false)) {
        if (ThreadCache* cache = cache_at_hand())
            threads_.keep_batch(*cache, full.batch, life);
        deferred_.give_back(backing_, full.batch, life, false);
        return;
    }
    deferred_.queue(backing_, full.batch, life);
    if (!full.first)
        reuse_deferred(false, false);
}

// There may be no fence to be had. Waiting for everything is as good.
template <Backing B>
bool CachingAllocator<B>::passed(Batch* batch, bool wait) {
    const DeferredFrees::Passed passed = deferred_.passed(backing_, batch, wait);
    if (passed != DeferredFrees::Passed::unfenced)
        return passed == DeferredFrees::Passed::yes;
    const bool ask = wait || reuse_ == Reuse::strict || deferred_.too_much(*batch, threads_.out());
    return ask && deferred_.quiesce(backing_, *batch);
}

// Makes available what the GPU has come past; with `large`, of large blocks also those that were freed last, and those
// that this thread keeps; with `wait`, everything that has been freed so far. True if it was anything.
template <Backing B>
bool CachingAllocator<B>::reuse_deferred(bool wait, bool large) {
    // The context may end in the meantime, and the allocator be another one's: what was taken out before is no more.
    const uint64_t life = life_.number();
    ThreadCache* cache = cache_at_hand();
    Batch *own = nullptr, *own_large = nullptr, *shared = nullptr;
    Block* kept[KeptBlocks::kMax];
    unsigned kept_count = 0;
    if (cache && cache->lock.enter()) {
        if (cache->open && (wait || cache->open->bytes >= kWorthFence))
            own = ThreadCaches::take_open(*cache, &ThreadCache::open);
        if (wait || large)
            own_large = ThreadCaches::take_open(*cache, &ThreadCache::open_large);
        while (Block* block = large ? cache->kept.take_newest() : nullptr)
            kept[kept_count++] = block;
        cache->lock.leave();
    }
    bool none_wait = false, any = kept_count != 0;
    if (kept_count)
        heap_.give_back(kept, kept_count, life);
    if (wait || large)
        shared = deferred_.take_shared(life, &none_wait);
    const bool alone = none_wait && !own && !(own_large && shared);
    if (own)
        deferred_.queue(backing_, own, life);
    if (own_large)
        std::swap(own_large, shared);
    // Mostly nothing waits before it, and it doesn't have to wait either.
    if (shared && alone && !wait) {
        if (passed(shared, false))
            return deferred_.give_back(backing_, shared, life, false) || any;
        deferred_.queue(backing_, shared, life);
        return any;
    }
    for (Batch* freed : {shared, own_large})
        if (freed)
            deferred_.queue(backing_, freed, life);

    while (Batch* batch = deferred_.take_oldest(life)) {
        if (!passed(batch, wait)) {
            deferred_.put_back_oldest(backing_, batch, life);
            break;
        }
        if (wait)
            syncs_.fetch_add(1, std::memory_order_relaxed);
        else if (cache)
            threads_.keep_batch(*cache, batch, life);
        if (!deferred_.give_back(backing_, batch, life, true))
            break;
        any = true;
    }
    return any;
}

// Without any of the locks. What threads keep to themselves becomes everybody's; with `wait`, as memory is short.
template <Backing B>
void CachingAllocator<B>::flush_caches(bool wait) {
    threads_.flush(wait);
    reuse_deferred(wait, true);
    heap_.trim_spans();
}

template <Backing B>
uint64_t CachingAllocator<B>::trim(uint64_t bytes) {
    if (!reserved())
        return 0;
    const Changing changing(*this);
    flush_caches(true);
    const uint64_t worn_out = supply_.give_back_worn_out();
    return worn_out + supply_.give_back_idle(bytes - std::min(bytes, worn_out), ~0ull);
}

}  // namespace cuslice
