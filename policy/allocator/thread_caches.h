// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <utility>

#include "policy/allocator/deferred_frees.h"
#include "policy/allocator/life.h"
#include "policy/allocator/segment_heap.h"
#include "policy/allocator/statistics.h"
#include "policy/allocator/thread_cache.h"

namespace cuslice {

// Memory that threads keep to themselves of an allocator: the list of their caches, how much each of them may hold,
// and the sum of what they have handed out and taken back.
//
// Thread-safe. A ThreadCache* that is given to a function is the calling thread's own. Takes the locks of DeferredFrees
// and SegmentHeap after its own.
class ThreadCaches {
  public:
    ThreadCaches(BlockOwner& owner, DeferredFrees& deferred, SegmentHeap& heap, const Life& life)
        : owner_(owner), deferred_(deferred), heap_(heap), life_(life) {}
    ThreadCaches(const ThreadCaches&) = delete;
    ThreadCaches& operator=(const ThreadCaches&) = delete;

    Mutex& mutex() const CUSLICE_RETURNS(mutex_) { return mutex_; }

    // Drops everything that the caches hold.
    void close(DeferredFrees& deferred) CUSLICE_REQUIRES(mutex_, deferred.mutex());

    // A cache for this thread, which has none of this allocator; null if the kernel gives no memory.
    ThreadCache* add();
    // Its thread ends: what it has goes back, and the cache is another thread's one day.
    void remove(ThreadCache* cache);

    // Fills an empty magazine with half of what it may hold, of which the block that its thread has just got is one: so
    // one for each need at first, then two, four.
    void refill(ThreadCache& cache, unsigned size_class);
    // A freed block that no work can touch, for a magazine that was full: the half that was freed first makes way.
    // False if the thread may keep none.
    bool put(ThreadCache& cache, const SmallBlock& block, unsigned size_class, uint64_t requested);
    // A large one, which is in nobody's hands. False if it is too large for that.
    bool keep(ThreadCache& cache, Block* block);
    // A freed block that work may still touch, for the thread's batch of large blocks: it keeps them once the GPU has
    // come past. False if the batch is full.
    bool defer(ThreadCache& cache, Block* block);
    // The same for the next batch. `full`: the last one, if the caller is to queue it. False if the block is too large.
    bool defer_in_next(ThreadCache& cache, Block* block, DeferredFrees::Full* full);
    // Takes the batch of one kind out of a cache, by whoever has the OwnerLock; null if it has fewer than `least`
    // bytes.
    static Batch* take_open(ThreadCache& cache, Batch* ThreadCache::*which, uint64_t least = 1);
    // Takes the thread's batches, and gives the blocks that it keeps back to the heap, as far as `scope` has them. Does
    // nothing without a cache.
    UnfencedFrees take_freed(ThreadCache* cache, ReuseScope scope, uint64_t life);
    // Puts a batch's blocks, which the GPU has come past, into the thread's own store, as far as there is room. Those
    // that are left are first in it. Does nothing without a cache.
    void keep_batch(ThreadCache* cache, Batch* batch, uint64_t life);

    // Returns the memory that threads keep to everybody; if memory `is_short`, they keep nothing for a while.
    void flush(bool is_short);

    // Sum of all that was handed out and taken back. The frees are read first, so that each free in the sum has its
    // allocation there too: the difference is never less than nothing.
    Traffic total() const CUSLICE_REQUIRES(mutex_);
    uint64_t out() const;
    SegmentHeap::Live live() const;
    // True if the peaks can't rise with `used` bytes in use, of which so many are `deferred`. Without the lock.
    bool peaks_cover(uint64_t used, uint64_t deferred) const {
        const uint64_t allocated = allocated_peak_, requested = requested_peak_;
        return used <= active_peak_ && used <= deferred + (allocated < requested ? allocated : requested);
    }
    void note_peaks();
    void add_to(Statistics* statistics) CUSLICE_REQUIRES(mutex_);

    MovedBytes& moved() { return moved_; }

  private:
    uint64_t may_be_kept() const;
    bool grant(ThreadCache& cache, uint64_t bytes) CUSLICE_REQUIRES(mutex_);
    void renounce(ThreadCache& cache, uint64_t bytes) CUSLICE_REQUIRES(mutex_);
    void set_capacity(ThreadCache& cache, unsigned size_class, unsigned capacity) CUSLICE_REQUIRES(mutex_);
    void give_up_kept(ThreadCache& cache) CUSLICE_REQUIRES(mutex_);
    void make_way(ThreadCache& cache, unsigned size_class) CUSLICE_REQUIRES(mutex_);
    void enlarge(ThreadCache& cache, unsigned size_class) CUSLICE_REQUIRES(mutex_);
    bool make_room(ThreadCache& cache, unsigned size_class) CUSLICE_REQUIRES(mutex_);
    void keep_more(ThreadCache& cache, uint64_t wanted);
    void empty(ThreadCache& cache) CUSLICE_REQUIRES(mutex_);
    template <typename Which>
    void take_from(Which which) CUSLICE_REQUIRES(mutex_);
    void take_from_idle() CUSLICE_REQUIRES(mutex_);
    void raise_peaks(const Traffic& total, uint64_t held, uint64_t deferred) CUSLICE_REQUIRES(mutex_);

    BlockOwner& owner_;
    DeferredFrees& deferred_;
    SegmentHeap& heap_;
    const Life& life_;

    alignas(64) mutable Mutex mutex_{LockRank::thread_caches};
    ThreadCache* caches_ CUSLICE_GUARDED_BY(mutex_) = nullptr;
    ThreadCache* spare_caches_ CUSLICE_GUARDED_BY(mutex_) = nullptr;
    uint64_t memory_ CUSLICE_GUARDED_BY(mutex_) = 0;           // bytes of all caches
    uint64_t granted_ CUSLICE_GUARDED_BY(mutex_) = 0;          // bytes that threads may keep to themselves
    unsigned short_of_memory_ CUSLICE_GUARDED_BY(mutex_) = 0;  // requests that are turned down yet
    unsigned turned_down_ CUSLICE_GUARDED_BY(mutex_) = 0;      // since it was looked whether threads are idle
    Traffic ended_ CUSLICE_GUARDED_BY(mutex_);                 // of threads that have ended
    // Bytes. Written with the lock.
    Relaxed<uint64_t> allocated_peak_, requested_peak_, active_peak_;
    MovedBytes moved_;
};

inline Batch* ThreadCaches::take_open(ThreadCache& cache, Batch* ThreadCache::*which, uint64_t least) {
    if (!(cache.*which) || (cache.*which)->bytes < least)
        return nullptr;
    Batch* open = std::exchange(cache.*which, nullptr);
    cache.deferred.add(0 - open->bytes);
    return open;
}

}  // namespace cuslice
