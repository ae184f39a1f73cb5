// SPDX-License-Identifier: Apache-2.0
// Blocks that wait for the GPU, and when they can be had again.
#pragma once
#include <algorithm>
#include <span>

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
        threads_.keep_batch(cache_at_hand(), full.batch, life);
        deferred_.give_back(backing_, full.batch, life, false);
        return;
    }
    deferred_.queue(backing_, full.batch, life);
    if (!full.first)
        reuse_deferred(ReuseScope::passed);
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

// True if any block can be had again.
template <Backing B>
bool CachingAllocator<B>::reuse_deferred(ReuseScope scope) {
    // The context may end in the meantime, and the allocator be another one's: what was taken out before is no more.
    const uint64_t life = life_.number();
    UnfencedFrees freed = threads_.take_freed(cache_at_hand(), scope, life);
    bool none_wait = false;
    if (scope != ReuseScope::passed)
        freed.add(deferred_.take_shared(life, &none_wait));

    // Mostly nothing waits before it, and it doesn't have to wait either.
    const bool alone = none_wait && freed.count == 1 && !freed.small;
    const bool at_once = alone && scope == ReuseScope::large;
    if (at_once && passed(freed.batches[0], false))
        return deferred_.give_back(backing_, freed.batches[0], life, false) || freed.gave_kept;
    for (Batch* batch : std::span(freed.batches, freed.count))
        deferred_.queue(backing_, batch, life);
    if (at_once)
        return freed.gave_kept;
    return give_back_passed(scope == ReuseScope::everything, life) || freed.gave_kept;
}

// Goes through what waits, oldest first, up to a batch that the GPU has not come past. True if any was given back.
template <Backing B>
bool CachingAllocator<B>::give_back_passed(bool wait, uint64_t life) {
    bool any = false;
    while (Batch* batch = deferred_.take_oldest(life)) {
        if (!passed(batch, wait)) {
            deferred_.put_back_oldest(backing_, batch, life);
            break;
        }
        if (wait)
            syncs_.fetch_add(1, std::memory_order_relaxed);
        else
            threads_.keep_batch(cache_at_hand(), batch, life);
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
    reuse_deferred(wait ? ReuseScope::everything : ReuseScope::large);
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
