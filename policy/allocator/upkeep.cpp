// What keeps a caching allocator in order: threads that come and go, memory that is given back, and what can be said of
// it all.
#include <algorithm>
#include <new>

#include "policy/allocator/caching_allocator.h"
#include "policy/base/cancellation.h"

namespace cuslice {

constinit thread_local ThreadCache* thread_caches = nullptr;

// Null if the kernel gives no memory for one.
ThreadCache* CachingAllocator::own_cache() {
    for (ThreadCache** link = &thread_caches; *link; link = &(*link)->next_of_thread) {
        ThreadCache* cache = *link;
        if (cache->owner != this) continue;
        *link = cache->next_of_thread;  // to the front
        cache->next_of_thread = thread_caches;
        return thread_caches = cache;
    }
    constexpr std::size_t kBytes = 64 << 10;
    static_assert(sizeof(ThreadCache) <= kBytes);
    ThreadCache* cache = nullptr;
    {
        LockGuard lock(mutex_);
        if ((cache = spare_caches_)) spare_caches_ = cache->next_of_owner;
    }
    void* memory = cache ? cache : take_table_memory(kBytes);
    if (!memory) return nullptr;
    const bool first = !thread_caches;
    {
        LockGuard lock(mutex_);
        if (!cache) cache_memory_ += kBytes;
        cache = new (memory) ThreadCache;
        cache->owner = this;
        cache->next_of_owner = caches_;
        caches_ = cache;
    }
    cache->next_of_thread = thread_caches;
    thread_caches = cache;
    if (first) backing_.thread_began(backing_.self);
    return cache;
}

void CachingAllocator::thread_ends() {
    while (ThreadCache* cache = thread_caches) {
        CachingAllocator& owner = *cache->owner;
        thread_caches = cache->next_of_thread;
        owner.take_leave(cache);
        // One that was closed may be about to become another context's.
        if (owner.is_open()) Changing{owner};
    }
}

// Its thread ends.
void CachingAllocator::take_leave(ThreadCache* cache) {
    LockGuard lock(mutex_);
    cache->lock.leave();  // a thread that was cancelled in there has not
    empty(*cache);
    traffic_.add(cache->traffic);
    moved(kAtOnce);
    for (ThreadCache** link = &caches_; *link; link = &(*link)->next_of_owner) {
        if (*link != cache) continue;
        *link = cache->next_of_owner;
        break;
    }
    cache->next_of_owner = spare_caches_;
    spare_caches_ = cache;
}

// With the lock held, of a segment with nothing in it but free and abandoned blocks. From here on the driver may hand
// out its addresses again, so nothing is known of them any more.
CachingAllocator::Detached CachingAllocator::detach(Segment* segment) {
    abandoned_ -= segment->abandoned;
    map_->remove(segment->begin, segment->end);
    segments_.take_out(segment);
    reserved_.store(segments_.bytes(), std::memory_order_relaxed);
    told_.segments_given_back++;
    told_.reserved.freed += segment->bytes;
    moved(kAtOnce);
    return {segment, life_.load(std::memory_order_relaxed)};
}

// Without the lock. Returns how many bytes it was: none if the driver refused it, for whatever reason. Then the segment
// is where it was, and counts as idle from now on.
std::uint64_t CachingAllocator::give_back(const Detached& detached) {
    Segment* segment = detached.segment;
    const std::uint64_t bytes = segment->bytes;
    const bool taken = backing_.give_back(backing_.self, segment->address, bytes);
    LockGuard lock(mutex_);
    // Its context may have ended since, and this be another one's allocator.
    const bool lives = life_.load(std::memory_order_relaxed) == detached.life && is_open();
    if (taken || !lives || !map_->add(segment, segment->begin, segment->end)) {
        segments_.drop(segment);
        return taken ? bytes : 0;
    }
    segments_.put_back(segment);
    segment->idle_since = 0;
    abandoned_ += segment->abandoned;
    reserved_.store(segments_.bytes(), std::memory_order_relaxed);
    told_.segments_given_back--;
    told_.reserved.freed -= bytes;
    moved(kAtOnce);
    return 0;
}

// Idle segments, those idle for longest last, until it is `bytes`; only those that are idle since before `since`. None
// while a stream is captured.
std::uint64_t CachingAllocator::give_back_idle(std::uint64_t bytes, std::uint64_t since, bool huge_only) {
    if (backing_.capturing(backing_.self)) return 0;
    std::uint64_t given = 0;
    while (given < bytes) {
        Detached detached;
        {
            LockGuard lock(mutex_);
            Segment* idle = nullptr;
            for (Segment* segment = segments_.first(); segment; segment = segment->next) {
                const bool too_new = since != ~0ull && (!segment->idle_since || segment->idle_since > since);
                if (!Segments::idle(*segment) || too_new || (huge_only && !segment->huge)) continue;
                // The smallest that is enough, or else the largest.
                const std::uint64_t rest = bytes - given;
                const bool better =
                    !idle || (idle->bytes < rest ? segment->bytes > idle->bytes
                                                 : segment->bytes >= rest && segment->bytes < idle->bytes);
                if (better) idle = segment;
            }
            if (!idle) break;
            detached = detach(idle);
        }
        const std::uint64_t now = give_back(detached);
        if (!now) break;
        given += now;
    }
    return given;
}

// By whoever is growing. Gives idle huge segments back, so that no more than `most` is held with `bytes` more. Not if
// that can't be had so, or has been too often; but if there is `no_other_way`, as many of all that are idle as it
// takes.
bool CachingAllocator::exchange_idle(std::uint64_t most, std::uint64_t bytes, bool no_other_way) {
    const std::uint64_t held = reserved(), left = most > bytes ? most - bytes : 0;
    if (held <= left) return true;
    if (!no_other_way) {
        LockGuard lock(mutex_);
        if (exchanged_ > GrowthPolicy::kExchanges * told_.allocated.peak) return false;
        if (segments_.idle_huge_bytes() < held - left) return false;
    }
    const std::uint64_t given = give_back_idle(held - left, ~0ull, !no_other_way);
    if (!no_other_way) {
        LockGuard lock(mutex_);
        exchanged_ += given;
    }
    return given >= held - left;
}

// The driver knows when the last of the others lets go of them.
std::uint64_t CachingAllocator::give_back_worn_out() {
    if (backing_.capturing(backing_.self)) return 0;
    const DisableCancellation uncancelled;
    for (std::uint64_t given = 0;;) {
        Detached detached;
        {
            LockGuard lock(mutex_);
            Segment* segment = segments_.worn_out();
            if (!segment) return given;
            detached = detach(segment);
        }
        const std::uint64_t now = give_back(detached);
        if (!now) return given;
        given += now;
    }
}

std::uint64_t CachingAllocator::trim(std::uint64_t bytes) {
    if (!reserved()) return 0;
    const Changing changing(*this);
    flush_caches(true);
    const std::uint64_t worn_out = give_back_worn_out();
    return worn_out + give_back_idle(bytes - std::min(bytes, worn_out), ~0ull);
}

void CachingAllocator::help_out() {
    if (backing_.capturing(backing_.self)) return;
    const DisableCancellation uncancelled;
    flush_caches(false);
    give_back_idle(~0ull, ~0ull);
}

std::uint64_t CachingAllocator::release_idle(std::uint64_t now, std::uint64_t long_enough, bool asleep) {
    const Changing changing(*this);
    if (asleep) flush_caches(false);
    {
        LockGuard lock(mutex_);
        segments_.note_idle(now);
    }
    const std::uint64_t worn_out = give_back_worn_out();
    return worn_out + (now > long_enough ? give_back_idle(~0ull, now - long_enough) : 0);
}

bool CachingAllocator::top_up(Denied* denied) {
    const Changing changing(*this);
    LockGuard growing(growing_);
    return take_rest(denied);
}

// By whoever is growing. In pieces of a half, a quarter, an eighth and the rest: one that is idle can then be given
// back, should the driver need room for itself.
bool CachingAllocator::take_rest(Denied* denied) {
    if (!options_.preallocate) return true;
    constexpr std::uint64_t kSmall = 64 << 20;
    const std::uint64_t all = backing_.room(backing_.self) / GrowthPolicy::kGranule * GrowthPolicy::kGranule;
    std::uint64_t left = all;
    while (left) {
        const bool last = left <= kSmall || left <= all / 8;
        std::uint64_t bytes = last ? left : left / 2 / GrowthPolicy::kGranule * GrowthPolicy::kGranule;
        while (!add_segment(bytes, denied)) {
            if (denied->by != Denied::By::driver) return left < all;
            bytes = GrowthPolicy::after_refusal(bytes, 1);
            if (!bytes) return left < all;
        }
        left -= std::min(left, bytes);
    }
    return true;
}

}  // namespace cuslice
