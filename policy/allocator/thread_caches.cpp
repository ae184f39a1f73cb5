// SPDX-License-Identifier: Apache-2.0
#include "policy/allocator/thread_caches.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "policy/base/cancellation.h"
#include "policy/base/table_memory.h"

namespace cuslice {

namespace {

// All threads together may keep this much, or this share of what is held if that is more. Each has its part of it when
// it needs more for the first time, in small steps: what a thread is granted is what its magazines can hold, so that
// only refills and flushes count anything.
constexpr uint64_t kMinKept = 4 << 20;
constexpr uint64_t kKeptShare = 16;

// So many requests are turned down before it is looked whether some threads have been idle meanwhile.
constexpr unsigned kPatience = 64;

// So many requests are turned down after memory was short: what was taken from the threads then is for the others.
constexpr unsigned kWhileShort = 256;

// A thread's batch that is not full, when it needs blocks: from here on it is worth a fence, as taking others instead
// would take more memory than that is worth.
constexpr uint64_t kWorthFence = 1 << 20;

// By the cache's own thread, with its OwnerLock, which it leaves.
[[gnu::always_inline]] inline void note_kept(ThreadCache& cache, Block* block) {
    cache.traffic.free(block->bytes, block->requested);
    block->requested = 0;
    cache.lock.leave();
}

// With the OwnerLock.
[[gnu::always_inline]] inline void add_to_open(ThreadCache& cache, Block* block) {
    cache.open_large->add(block);
    cache.deferred.add(block->bytes);
    cache.traffic.free(block->bytes, block->requested);
    block->requested = 0;
}

}  // namespace

ThreadCache* ThreadCaches::add() {
    constexpr size_t kBytes = 64 << 10;
    static_assert(sizeof(ThreadCache) <= kBytes);
    ThreadCache* cache = nullptr;
    {
        LockGuard lock(mutex_);
        if ((cache = spare_caches_))
            spare_caches_ = cache->next_of_owner;
    }
    void* memory = cache ? cache : take_table_memory(kBytes);
    if (!memory)
        return nullptr;
    LockGuard lock(mutex_);
    if (!cache)
        memory_ += kBytes;
    cache = new (memory) ThreadCache;
    cache->owner = &owner_;
    cache->next_of_owner = caches_;
    return caches_ = cache;
}

void ThreadCaches::remove(ThreadCache* cache) {
    LockGuard lock(mutex_);
    cache->lock.leave();  // a thread that was cancelled in there has not
    empty(*cache);
    ended_.add(cache->traffic);
    for (ThreadCache** link = &caches_; *link; link = &(*link)->next_of_owner) {
        if (*link != cache)
            continue;
        *link = cache->next_of_owner;
        break;
    }
    cache->next_of_owner = spare_caches_;
    spare_caches_ = cache;
}

void ThreadCaches::close(DeferredFrees& deferred) {
    for (ThreadCache* cache = caches_; cache; cache = cache->next_of_owner) {
        const bool revoked = cache->lock.revoke();
        for (Magazine& magazine : cache->magazines)
            magazine.count = magazine.capacity = 0;
        cache->kept = {};
        cache->granted = 0;
        for (Batch** open : {&cache->open, &cache->open_large}) {
            if (*open)
                deferred.drop_record(*open);
            *open = nullptr;
        }
        cache->deferred.add(0 - cache->deferred.get());
        cache->traffic.reset();
        if (revoked)
            cache->lock.restore();
    }
    ended_.reset();
    for (Relaxed<uint64_t>* peak : {&allocated_peak_, &requested_peak_, &active_peak_})
        *peak = 0;
    granted_ = 0;
    short_of_memory_ = turned_down_ = 0;
}

// Below, with the lock held, what is of a cache is done by its own thread or with its OwnerLock revoked.
uint64_t ThreadCaches::may_be_kept() const { return std::max(kMinKept, heap_.held() / kKeptShare); }

bool ThreadCaches::grant(ThreadCache& cache, uint64_t bytes) {
    if (short_of_memory_) {
        short_of_memory_--;
        return false;
    }
    if (granted_ + bytes > may_be_kept() && ++turned_down_ >= kPatience) {
        turned_down_ = 0;
        take_from_idle();
    }
    if (granted_ + bytes > may_be_kept())
        return false;
    granted_ += bytes;
    cache.granted += bytes;
    return true;
}

void ThreadCaches::renounce(ThreadCache& cache, uint64_t bytes) {
    granted_ -= bytes;
    cache.granted -= bytes;
}

void ThreadCaches::set_capacity(ThreadCache& cache, unsigned size_class, unsigned capacity) {
    Magazine& magazine = cache.magazines[size_class];
    if (magazine.count > capacity) {
        std::reverse(magazine.slots + capacity, magazine.slots + magazine.count);
        heap_.give_back(magazine.slots + capacity, magazine.count - capacity);
        magazine.count = static_cast<uint16_t>(capacity);
    }
    renounce(cache, (magazine.capacity - capacity) * SizeClass::bytes(size_class));
    magazine.capacity = static_cast<uint16_t>(capacity);
}

void ThreadCaches::give_up_kept(ThreadCache& cache) {
    Block* blocks[KeptBlocks::kMax];
    unsigned count = 0;
    while (Block* block = cache.kept.take_newest())
        blocks[count++] = block;
    if (count)
        heap_.give_back(blocks, count, life_.number());
    renounce(cache, cache.kept.limit());
    cache.kept.set_limit(0);
}

// Takes from the thread's other sizes: its large blocks if they are most of what it keeps, else half of one class.
void ThreadCaches::make_way(ThreadCache& cache, unsigned size_class) {
    if (cache.kept.limit() > cache.granted / 2)
        return give_up_kept(cache);
    for (unsigned i = 1; i < SizeClass::kCount; i++) {
        const unsigned other = (cache.shrunk_last + i) % SizeClass::kCount;
        if (other == size_class || !cache.magazines[other].capacity)
            continue;
        cache.shrunk_last = other;
        return set_capacity(cache, other, cache.magazines[other].capacity / 2);
    }
}

// A magazine was empty, or full: twice as much may be in it from now on, if all threads don't have too much already.
void ThreadCaches::enlarge(ThreadCache& cache, unsigned size_class) {
    Magazine& magazine = cache.magazines[size_class];
    const unsigned most = most_in_magazine(size_class), now = magazine.capacity;
    const unsigned more = std::min(most, now ? 2 * now : 2) - now;
    const uint64_t bytes = more * SizeClass::bytes(size_class);
    if (!more)
        return;
    const bool waits = short_of_memory_;
    if (!grant(cache, bytes)) {
        if (waits)
            return;
        make_way(cache, size_class);
        if (!grant(cache, bytes))
            return;
    }
    magazine.capacity = static_cast<uint16_t>(now + more);
}

void ThreadCaches::refill(ThreadCache& cache, unsigned size_class) {
    LockGuard lock(mutex_);
    enlarge(cache, size_class);
    Magazine& magazine = cache.magazines[size_class];
    const unsigned half = magazine.capacity / 2u;
    if (half < magazine.count + 2u)
        return;
    const unsigned got = heap_.take(size_class, magazine.slots + magazine.count, half - 1u - magazine.count);
    magazine.count = static_cast<uint16_t>(magazine.count + got);
}

bool ThreadCaches::make_room(ThreadCache& cache, unsigned size_class) {
    Magazine& magazine = cache.magazines[size_class];
    if (magazine.count < magazine.capacity)
        return true;
    enlarge(cache, size_class);
    if (magazine.count < magazine.capacity || !magazine.capacity)
        return magazine.capacity;
    const unsigned half = (magazine.count + 1u) / 2;
    heap_.give_back(magazine.slots, half);
    magazine.count = static_cast<uint16_t>(magazine.count - half);
    std::copy_n(magazine.slots + half, magazine.count, magazine.slots);
    moved_.add(half * SizeClass::bytes(size_class));
    return true;
}

bool ThreadCaches::put(ThreadCache& cache, const SmallBlock& block, unsigned size_class, uint64_t requested) {
    LockGuard lock(mutex_);
    if (!make_room(cache, size_class))
        return false;
    Magazine& magazine = cache.magazines[size_class];
    magazine.slots[magazine.count++] = block;
    cache.traffic.free(SizeClass::bytes(size_class), requested);
    moved_.add(SizeClass::bytes(size_class));
    return true;
}

bool ThreadCaches::keep(ThreadCache& cache, Block* block) {
    if (!cache.lock.enter())
        return false;
    const KeptBlocks& kept = cache.kept;
    if (cache.kept.add(block)) [[likely]] {
        note_kept(cache, block);
        return true;
    }
    if (kept.limit() < KeptBlocks::kMaxBytes && kept.bytes() + block->bytes > kept.limit()) {
        const uint64_t wanted = kept.bytes() + block->bytes;
        cache.lock.leave();
        keep_more(cache, wanted);
        if (!cache.lock.enter())
            return false;
        if (block->bytes > kept.limit()) {
            cache.lock.leave();
            return false;
        }
    }
    Block* instead[KeptBlocks::kMax];
    unsigned count = 0;
    while (!cache.kept.add(block))
        count += cache.kept.take_older_half(instead + count);
    std::reverse(instead, instead + count);
    note_kept(cache, block);
    if (count)
        heap_.give_back(instead, count, life_.number());
    return true;
}

// Without the lock: the thread may keep so many bytes of large blocks, if all threads don't have too much.
void ThreadCaches::keep_more(ThreadCache& cache, uint64_t wanted) {
    LockGuard lock(mutex_);
    wanted = std::min(wanted, KeptBlocks::kMaxBytes);
    const uint64_t limit = cache.kept.limit();
    if (wanted > limit && grant(cache, wanted - limit))
        cache.kept.set_limit(wanted);
}

UnfencedFrees ThreadCaches::take_freed(ThreadCache* cache, ReuseScope scope, uint64_t life) {
    UnfencedFrees freed;
    if (!cache || !cache->lock.enter())
        return freed;
    Block* kept[KeptBlocks::kMax];
    unsigned kept_count = 0;
    freed.add(take_open(*cache, &ThreadCache::open, scope == ReuseScope::everything ? 1 : kWorthFence));
    freed.small = freed.count != 0;
    if (scope != ReuseScope::passed) {
        freed.add(take_open(*cache, &ThreadCache::open_large));
        while (Block* block = cache->kept.take_newest())
            kept[kept_count++] = block;
    }
    cache->lock.leave();
    freed.gave_kept = kept_count != 0;
    if (freed.gave_kept)
        heap_.give_back(kept, kept_count, life);
    return freed;
}

bool ThreadCaches::defer(ThreadCache& cache, Block* block) {
    if (!cache.lock.enter())
        return false;
    const Batch* open = cache.open_large;
    const bool room = open && open->count < Batch::kMax && open->bytes + block->bytes <= cache.kept.limit();
    if (room) [[likely]]
        add_to_open(cache, block);
    cache.lock.leave();
    return room;
}

bool ThreadCaches::defer_in_next(ThreadCache& cache, Block* block, DeferredFrees::Full* full) {
    if (!cache.lock.enter())
        return false;
    const uint64_t limit = cache.kept.limit(), deferred = cache.open_large ? cache.open_large->bytes : 0;
    cache.lock.leave();
    if (limit < KeptBlocks::kMaxBytes && deferred + block->bytes > limit)
        keep_more(cache, deferred + block->bytes);
    Batch* next = deferred_.new_batch(block->bytes, &full->first);
    if (!next)
        return false;
    bool room = false;
    if (cache.lock.enter()) {
        Batch*& open = cache.open_large;
        room = block->bytes <= cache.kept.limit();
        if (room && open && (open->count == Batch::kMax || open->bytes + block->bytes > cache.kept.limit()))
            full->batch = take_open(cache, &ThreadCache::open_large);
        if (room) {
            if (!open)
                open = std::exchange(next, nullptr);
            add_to_open(cache, block);
        }
        cache.lock.leave();
    }
    if (next)
        deferred_.give_back_record(next);
    return room;
}

void ThreadCaches::keep_batch(ThreadCache* cache, Batch* batch, uint64_t life) {
    if (!cache || !cache->lock.enter())
        return;
    // close() empties this cache once it has ended the life: blocks put in here before that go with it.
    if (!life_.is(life))
        return cache->lock.leave();
    uint32_t i = 0, left = 0;
    // Mostly they are of one size.
    const uint32_t classes = batch->classes;
    if (classes && !(classes & (classes - 1)) && classes != Batch::kLarge) {
        Magazine& magazine = cache->magazines[std::countr_zero(classes)];
        const uint32_t room = std::min<uint32_t>(batch->count, magazine.capacity - magazine.count);
        for (; i < room; i++)
            magazine.slots[magazine.count + i] = Batch::small(batch->blocks[i]);
        magazine.count = static_cast<uint16_t>(magazine.count + room);
    }
    for (; i < batch->count; i++) {
        const Batch::Deferred deferred = batch->blocks[i];
        if (Block* block = Batch::large(deferred)) {
            // One that was deferred for all threads to have is theirs.
            if (block->state == Block::State::used && cache->kept.add(block))
                continue;
        } else {
            Magazine& magazine = cache->magazines[Batch::size_class(deferred)];
            if (magazine.count < magazine.capacity) {
                magazine.slots[magazine.count++] = Batch::small(deferred);
                continue;
            }
        }
        batch->blocks[left++] = deferred;
    }
    cache->lock.leave();
    batch->count = left;
}

// Everything that a thread keeps becomes everybody's.
void ThreadCaches::empty(ThreadCache& cache) {
    for (unsigned c = 0; c < SizeClass::kCount; c++)
        set_capacity(cache, c, 0);
    give_up_kept(cache);
    for (auto which : {&ThreadCache::open, &ThreadCache::open_large})
        if (Batch* open = take_open(cache, which))
            deferred_.queue_unfenced(open);
}

// From the threads for which `which` is true: with one barrier for all of them.
template <typename Which>
void ThreadCaches::take_from(Which which) {
    OwnerLock::Barrier barrier;
    bool any = false;
    for (ThreadCache* cache = caches_; cache; cache = cache->next_of_owner) {
        if (!(cache->demanded = which(*cache)))
            continue;
        barrier.demand(cache->lock);
        any = true;
    }
    if (!any)
        return;
    barrier.run();
    for (ThreadCache* cache = caches_; cache; cache = cache->next_of_owner) {
        if (!cache->demanded)
            continue;
        if (cache->lock.had())
            empty(*cache);
        cache->lock.restore();
    }
}

void ThreadCaches::take_from_idle() {
    take_from([](ThreadCache& cache) {
        const uint64_t operations = cache.operations();
        const bool idle = cache.granted && operations == cache.operations_seen;
        cache.operations_seen = operations;
        return idle;
    });
}

void ThreadCaches::flush(bool is_short) {
    LockGuard lock(mutex_);
    take_from([](ThreadCache& cache) { return cache.granted || cache.deferred.get(); });
    if (is_short)
        short_of_memory_ = kWhileShort;
}

Traffic ThreadCaches::total() const {
    Traffic total;
    for (const ThreadCache* cache = caches_; cache; cache = cache->next_of_owner)
        total.add_freed(cache->traffic);
    total.add_freed(deferred_.traffic());
    total.add_freed(heap_.traffic());
    for (const ThreadCache* cache = caches_; cache; cache = cache->next_of_owner)
        total.add_taken(cache->traffic);
    total.add_taken(heap_.traffic());
    total.add(ended_);
    return total;
}

uint64_t ThreadCaches::out() const {
    LockGuard lock(mutex_);
    return total().out();
}

SegmentHeap::Live ThreadCaches::live() const {
    LockGuard lock(mutex_);
    return {total().out(), allocated_peak_};
}

void ThreadCaches::raise_peaks(const Traffic& total, uint64_t held, uint64_t deferred) {
    // No more can be out than is held, whatever threads say of themselves.
    const uint64_t allocated = std::min(total.out(), held);
    const auto raise = [](Relaxed<uint64_t>& peak, uint64_t value) {
        if (value > peak)
            peak = value;
    };
    raise(allocated_peak_, allocated);
    raise(requested_peak_, std::min(total.requested_out(), allocated));
    raise(active_peak_, std::min(allocated + deferred, held));
}

void ThreadCaches::note_peaks() {
    LockGuard lock(mutex_);
    raise_peaks(total(), heap_.held(), deferred_.bytes());
}

void ThreadCaches::add_to(Statistics* statistics) {
    const Traffic all = total();
    const uint64_t held = heap_.held();
    uint64_t deferred = deferred_.bytes();
    raise_peaks(all, held, deferred);
    // A thread's own batch is read as it is filled: a moment's figure.
    for (const ThreadCache* cache = caches_; cache; cache = cache->next_of_owner)
        deferred += cache->deferred.get();
    const auto tally = [](Tally& of, uint64_t allocated, uint64_t current, uint64_t peak) {
        of = {current, std::max(peak, current), allocated, allocated - current};
    };
    const uint64_t allocated = std::min(all.out(), held);
    tally(statistics->allocated, all.allocated.get(), allocated, allocated_peak_);
    tally(statistics->requested, all.requested_allocated.get(), std::min(all.requested_out(), allocated),
          requested_peak_);
    tally(statistics->active, all.allocated.get(), std::min(allocated + deferred, held), active_peak_);
    statistics->allocations = all.allocations.get();
    statistics->frees = all.frees.get();
    statistics->own_memory += memory_;
}

}  // namespace cuslice
