// What threads may keep to themselves: how much of it each may have, and taking it from them.
#include <algorithm>

#include "policy/allocator/caching_allocator.h"
#include "policy/base/cancellation.h"

namespace cuslice {

namespace {

// All threads together may keep this much, or this share of what is held if that is more. Each has its part of it when
// it needs more for the first time, in small steps: what a thread is granted is what its magazines can hold, so that
// only refills and flushes count anything.
constexpr std::uint64_t kMinKept = 4 << 20;
constexpr std::uint64_t kKeptShare = 16;

// So many requests are turned down before it is looked whether some threads have been idle meanwhile.
constexpr unsigned kPatience = 64;

// So many requests are turned down after memory was short: what was taken from the threads then is for the others.
constexpr unsigned kWhileShort = 256;

// The thread's own, with its lock, which it leaves.
[[gnu::always_inline]] inline void note_kept(ThreadCache& cache, Block* block) {
    cache.traffic.free(block->bytes, block->requested);
    block->requested = 0;
    cache.lock.leave();
}

}  // namespace

// The rest of this file, with the lock held; and of a cache, by its own thread or with its OwnerLock revoked.
std::uint64_t CachingAllocator::may_be_kept() const { return std::max(kMinKept, segments_.bytes() / kKeptShare); }

bool CachingAllocator::grant(ThreadCache& cache, std::uint64_t bytes) {
    if (short_of_memory_) {
        short_of_memory_--;
        return false;
    }
    if (granted_ + bytes > may_be_kept() && ++turned_down_ >= kPatience) {
        turned_down_ = 0;
        take_from_idle();
    }
    if (granted_ + bytes > may_be_kept()) return false;
    granted_ += bytes;
    cache.granted += bytes;
    return true;
}

void CachingAllocator::renounce(ThreadCache& cache, std::uint64_t bytes) {
    granted_ -= bytes;
    cache.granted -= bytes;
}

void CachingAllocator::set_capacity(ThreadCache& cache, unsigned size_class, unsigned capacity) {
    Magazine& magazine = cache.magazines[size_class];
    while (magazine.count > capacity) spans_.give_back(magazine.slots[--magazine.count].address);
    renounce(cache, (magazine.capacity - capacity) * SizeClass::bytes(size_class));
    magazine.capacity = static_cast<std::uint16_t>(capacity);
}

void CachingAllocator::give_up_kept(ThreadCache& cache) {
    while (Block* block = cache.kept.take_newest()) segments_.give_back(block);
    renounce(cache, cache.kept.limit());
    cache.kept.set_limit(0);
}

// Of what a thread has for other sizes: the large blocks, if they are most of it, or half of one class.
void CachingAllocator::make_way(ThreadCache& cache, unsigned size_class) {
    if (cache.kept.limit() > cache.granted / 2) return give_up_kept(cache);
    for (unsigned i = 1; i < SizeClass::kCount; i++) {
        const unsigned other = (cache.shrunk_last + i) % SizeClass::kCount;
        if (other == size_class || !cache.magazines[other].capacity) continue;
        cache.shrunk_last = other;
        return set_capacity(cache, other, cache.magazines[other].capacity / 2);
    }
}

// A magazine was empty, or full: twice as much may be in it from now on, if all threads don't have too much already.
void CachingAllocator::enlarge(ThreadCache& cache, unsigned size_class) {
    Magazine& magazine = cache.magazines[size_class];
    const unsigned most = most_in_magazine(size_class), now = magazine.capacity;
    const unsigned more = std::min(most, now ? 2 * now : 2) - now;
    const std::uint64_t bytes = more * SizeClass::bytes(size_class);
    if (!more) return;
    const bool waits = short_of_memory_;
    if (!grant(cache, bytes)) {
        if (waits) return;
        make_way(cache, size_class);
        if (!grant(cache, bytes)) return;
    }
    magazine.capacity = static_cast<std::uint16_t>(now + more);
}

// An empty magazine gets half of what it may hold, of which the block that its thread needs now is one: so one for each
// need at first, then two, four. Returns how many it got.
unsigned CachingAllocator::refill(ThreadCache& cache, unsigned size_class) {
    enlarge(cache, size_class);
    Magazine& magazine = cache.magazines[size_class];
    const unsigned half = magazine.capacity / 2u;
    if (half < magazine.count + 2u) return 0;
    const unsigned got = spans_.take(size_class, magazine.slots + magazine.count, half - 1u - magazine.count);
    magazine.count = static_cast<std::uint16_t>(magazine.count + got);
    return got;
}

// Room for a block in a full magazine: the half that was freed first makes way. False if the thread may keep none.
bool CachingAllocator::make_room(ThreadCache& cache, unsigned size_class) {
    Magazine& magazine = cache.magazines[size_class];
    if (magazine.count < magazine.capacity) return true;
    enlarge(cache, size_class);
    if (magazine.count < magazine.capacity || !magazine.capacity) return magazine.capacity;
    const unsigned half = (magazine.count + 1u) / 2;
    for (unsigned i = 0; i < half; i++) spans_.give_back(magazine.slots[i].address);
    magazine.count = static_cast<std::uint16_t>(magazine.count - half);
    std::copy_n(magazine.slots + half, magazine.count, magazine.slots);
    moved(half * SizeClass::bytes(size_class));
    return true;
}

// Of KeptBlocks::kMaxBytes at most. 0 if this thread keeps none of the size.
std::uint64_t CachingAllocator::from_kept(std::uint64_t bytes) {
    ThreadCache* cache = thread_caches;
    if (!cache || cache->owner != this || !cache->lock.enter()) return 0;
    const std::uint64_t address = take_kept(*cache, bytes);
    cache->lock.leave();
    return address;
}

// Without the lock. A block that is in nobody's hands, and that no work can touch. False if it is too large.
bool CachingAllocator::keep(Block* block) {
    if (block->bytes > KeptBlocks::kMaxBytes) return false;
    ThreadCache* cache = thread_caches;
    if (!cache || cache->owner != this) {
        const DisableCancellation uncancelled;
        cache = own_cache();
    }
    if (!cache || !cache->lock.enter()) return false;
    const KeptBlocks& kept = cache->kept;
    if (cache->kept.add(block)) [[likely]] {
        note_kept(*cache, block);
        return true;
    }
    if (kept.limit() < KeptBlocks::kMaxBytes && kept.bytes() + block->bytes > kept.limit()) {
        const std::uint64_t wanted = kept.bytes() + block->bytes;
        cache->lock.leave();
        keep_more(*cache, wanted);
        if (!cache->lock.enter()) return false;
        if (block->bytes > kept.limit()) {
            cache->lock.leave();
            return false;
        }
    }
    Block* instead[KeptBlocks::kMax];
    unsigned count = 0;
    while (!cache->kept.add(block)) count += cache->kept.take_older_half(instead + count);
    note_kept(*cache, block);
    if (count) {
        LockGuard lock(mutex_);
        while (count) segments_.give_back(instead[--count]);
    }
    return true;
}

// Without the lock, by the cache's own thread: it may keep so many bytes of large blocks, if all threads don't have too
// much.
void CachingAllocator::keep_more(ThreadCache& cache, std::uint64_t wanted) {
    LockGuard lock(mutex_);
    wanted = std::min(wanted, KeptBlocks::kMaxBytes);
    const std::uint64_t limit = cache.kept.limit();
    if (wanted > limit && grant(cache, wanted - limit)) cache.kept.set_limit(wanted);
}

// Everything that a thread keeps becomes everybody's.
void CachingAllocator::empty(ThreadCache& cache) {
    for (unsigned c = 0; c < SizeClass::kCount; c++) set_capacity(cache, c, 0);
    give_up_kept(cache);
    for (auto which : {&ThreadCache::open, &ThreadCache::open_large}) {
        Batch* open = take_open(cache, which);
        if (!open) continue;
        open->next = oldest_;  // without a fence yet: whoever looks at it next makes one
        oldest_ = open;
        if (!newest_) newest_ = open;
        queued_ += open->bytes;
        number(open);
    }
}

// From the threads for which `which` is true: with one barrier for all of them.
template <typename Which>
void CachingAllocator::take_from(Which which) {
    OwnerLock::Barrier barrier;
    bool any = false;
    for (ThreadCache* cache = caches_; cache; cache = cache->next_of_owner) {
        if (!(cache->demanded = which(*cache))) continue;
        barrier.demand(cache->lock);
        any = true;
    }
    if (!any) return;
    barrier.run();
    for (ThreadCache* cache = caches_; cache; cache = cache->next_of_owner) {
        if (!cache->demanded) continue;
        if (cache->lock.had()) empty(*cache);
        cache->lock.restore();
    }
}

void CachingAllocator::take_from_idle() {
    take_from([](ThreadCache& cache) {
        const std::uint64_t operations = cache.operations();
        const bool idle = cache.granted && operations == cache.operations_seen;
        cache.operations_seen = operations;
        return idle;
    });
}

// Not with the lock held. What threads keep to themselves becomes everybody's; with `wait`, as memory is short.
void CachingAllocator::flush_caches(bool wait) {
    {
        LockGuard lock(mutex_);
        take_from([](ThreadCache& cache) { return cache.granted || cache.deferred.get(); });
        if (wait) short_of_memory_ = kWhileShort;
    }
    reuse_deferred(wait, true);
    LockGuard lock(mutex_);
    spans_.trim();
}

}  // namespace cuslice
