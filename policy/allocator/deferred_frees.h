// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>

#include "policy/allocator/backing.h"
#include "policy/allocator/batch.h"
#include "policy/allocator/life.h"
#include "policy/allocator/records.h"
#include "policy/allocator/segment_heap.h"
#include "policy/allocator/traffic.h"

namespace cuslice {

// When a freed block may be used again. `strict`: free() waits for the GPU. `deferred`: the block waits in a batch.
enum class Reuse : uint8_t { strict, deferred };

// How much of what was freed is to be had again.
enum class ReuseScope : uint8_t {
    passed,      // what the GPU has come past
    large,       // also large blocks that were freed last, and those that this thread keeps
    everything,  // all that has been freed so far: waits for the GPU
};

// Batches that have no fence yet, oldest first.
struct UnfencedFrees {
    Batch* batches[3];
    unsigned count = 0;
    bool small = false;      // the first one has a thread's small blocks
    bool gave_kept = false;  // blocks that the thread kept were given back

    void add(Batch* batch) {
        if (batch)
            batches[count++] = batch;
    }
};

// Freed blocks that the GPU may still be using. They are collected in batches; a full one gets a fence, joins the queue
// of those that wait, oldest first, and once the GPU has passed the fence its blocks go back to the heap.
//
// Threads fill batches of their own, which are in ThreadCache; here is the one that all threads fill, the queue, and
// the records of all batches. A batch that is in neither is in the hands of one thread, which asks the driver about it.
//
// Thread-safe, but open(). The functions that ask the GPU are given the backing; they call it without the lock, but for
// drop_fence(). Takes SegmentHeap's lock after its own.
class DeferredFrees {
  public:
    DeferredFrees(SegmentHeap& heap, const Life& life) : heap_(heap), life_(life) {}
    DeferredFrees(const DeferredFrees&) = delete;
    DeferredFrees& operator=(const DeferredFrees&) = delete;

    Mutex& mutex() const CUSLICE_RETURNS(mutex_) { return mutex_; }

    void open(Reuse reuse) CUSLICE_UNCHECKED { reuse_ = reuse; }
    // All batches but those of threads are no more.
    void close(Backing auto& backing) CUSLICE_REQUIRES(mutex_);
    void drop_record(Batch* batch) CUSLICE_REQUIRES(mutex_) { batches_.give_back(batch); }

    // An empty batch for a thread that frees so many bytes; null if the kernel gives no memory. `first`: none waits.
    Batch* new_batch(uint64_t bytes, bool* first);
    // It was not needed.
    void give_back_record(Batch* batch);

    // A freed block for all threads' batch. `full`: one that the caller is to queue. False if there is no memory to
    // note the block in: it is counted as freed, and can't be used again.
    struct Full {
        Batch* batch = nullptr;
        bool first = false;  // none waits before it
    };
    bool defer(const SmallBlock& block, unsigned size_class, uint64_t requested, Full* full);
    bool defer(Block* block, Full* full);
    // The same of a block that is worth a fence for itself, which is there if it isn't 0: made after the block was
    // freed.
    bool defer_alone(Backing auto& backing, Block* block, Fence fence, Full* full);
    bool worth_own_fence(const Block& block) const;

    // Lets a batch wait, behind a fence after everything that could have used its blocks. It is dropped if this life
    // has ended.
    void queue(Backing auto& backing, Batch* batch, uint64_t life);
    // The same, before all others and without a fence yet: whoever looks at it next makes one.
    void queue_unfenced(Batch* batch);
    // The oldest that waits, taken from the queue; null if there is none.
    Batch* take_oldest(uint64_t life);
    void put_back_oldest(Backing auto& backing, Batch* batch, uint64_t life);
    // All threads' batch, if there is one. `none_wait`: nor is there any other here.
    Batch* take_shared(uint64_t life, bool* none_wait);

    // Asks if the GPU has come past a batch; with `wait`, answers once it has. unfenced: nobody can say.
    enum class Passed : uint8_t { no, yes, unfenced };
    Passed passed(Backing auto& backing, Batch* batch, bool wait);
    // Waits, for an unfenced batch, until everything that was given to the GPU is done. False on an error. One wait
    // is enough for all batches that waited when it began.
    bool quiesce(Backing auto& backing, const Batch& batch);
    // True if so much waits without fences, with `out` bytes in the program's hands, that it is worth quiesce().
    bool too_much(const Batch& batch, uint64_t out) const;

    // The blocks of a batch that the GPU has come past are free. False if the life has ended: the batch is dropped.
    bool give_back(Backing auto& backing, Batch* batch, uint64_t life, bool was_queued);

    // Bytes that wait here. A moment's figure without the lock.
    uint64_t bytes() const { return queued_ + shared_bytes_; }
    // Bytes that its records take. A moment's figure without the lock.
    uint64_t memory() const CUSLICE_UNCHECKED { return batches_.memory(); }
    // Traffic of the frees here. Written with the lock.
    const Traffic& traffic() const { return traffic_; }
    MovedBytes& moved() { return moved_; }

  private:
    bool add_to_shared(uint64_t bytes, Full* full) CUSLICE_REQUIRES(mutex_);
    void take_if_full(Full* full) CUSLICE_REQUIRES(mutex_);
    void count_free(uint64_t bytes, uint64_t requested) CUSLICE_REQUIRES(mutex_);
    void drop(Backing auto& backing, Batch* batch) CUSLICE_REQUIRES(mutex_);

    SegmentHeap& heap_;
    const Life& life_;
    Reuse reuse_ = Reuse::strict;

    alignas(64) mutable Mutex mutex_{LockRank::deferred_frees};
    Records<Batch> batches_ CUSLICE_GUARDED_BY(mutex_);
    Batch* shared_ CUSLICE_GUARDED_BY(mutex_) = nullptr;  // what all threads fill: it has no fence yet
    Batch* oldest_ CUSLICE_GUARDED_BY(mutex_) = nullptr;
    Batch* newest_ CUSLICE_GUARDED_BY(mutex_) = nullptr;
    // Numbers of batches, in the order in which they came to wait.
    uint64_t last_number_ CUSLICE_GUARDED_BY(mutex_) = 0;
    uint64_t quiet_up_to_ CUSLICE_GUARDED_BY(mutex_) = 0;
    // Written with the lock.
    Relaxed<uint64_t> queued_, shared_bytes_;
    Traffic traffic_;
    MovedBytes moved_;
};

void DeferredFrees::close(Backing auto& backing) {
    if (shared_)
        batches_.give_back(shared_);
    shared_ = nullptr;
    while (Batch* batch = oldest_) {
        oldest_ = batch->next;
        drop(backing, batch);
    }
    newest_ = nullptr;
    queued_ = 0;
    shared_bytes_ = 0;
    traffic_.reset();
}

bool DeferredFrees::defer_alone(Backing auto& backing, Block* block, Fence fence, Full* full) {
    {
        UncancelledLockGuard lock(mutex_);
        if (Batch* batch = batches_.take()) {
            count_free(block->bytes, block->requested);
            block->state = Block::State::deferred;
            batch->add(block);
            batch->fence = fence;
            full->batch = batch;
            return true;
        }
        if (fence)
            backing.drop_fence(fence);
    }
    return defer(block, full);
}

void DeferredFrees::queue(Backing auto& backing, Batch* batch, uint64_t life) {
    if (!batch->fence && reuse_ == Reuse::deferred)
        batch->fence = backing.fence(batch->address());
    UncancelledLockGuard lock(mutex_);
    if (!life_.is(life))
        return drop(backing, batch);
    batch->next = nullptr;
    (newest_ ? newest_->next : oldest_) = batch;
    newest_ = batch;
    queued_ += batch->bytes;
    batch->number = ++last_number_;
}

void DeferredFrees::put_back_oldest(Backing auto& backing, Batch* batch, uint64_t life) {
    LockGuard lock(mutex_);
    if (!life_.is(life))
        return drop(backing, batch);
    batch->next = oldest_;
    oldest_ = batch;
    if (!newest_)
        newest_ = batch;
}

DeferredFrees::Passed DeferredFrees::passed(Backing auto& backing, Batch* batch, bool wait) {
    if (!batch->fence && reuse_ == Reuse::deferred) {
        if (backing.past(batch->address(), &batch->fence))
            return Passed::yes;
        if (batch->fence && !wait)
            return Passed::no;
    }
    if (!batch->fence)
        return Passed::unfenced;
    if (!backing.passed(batch->fence, wait))
        return Passed::no;
    batch->fence = 0;
    return Passed::yes;
}

bool DeferredFrees::quiesce(Backing auto& backing, const Batch& batch) {
    uint64_t last = 0;
    {
        LockGuard lock(mutex_);
        if (batch.number && batch.number <= quiet_up_to_)
            return true;
        last = last_number_;
    }
    if (backing.quiesce(batch.address(), false) != 0)
        return false;
    LockGuard lock(mutex_);
    quiet_up_to_ = std::max(quiet_up_to_, last);
    return true;
}

// Its bytes are no longer counted as waiting before anybody can have its blocks again: they are never counted twice.
bool DeferredFrees::give_back(Backing auto& backing, Batch* batch, uint64_t life, bool was_queued) {
    LockGuard lock(mutex_);
    if (!life_.is(life)) {
        drop(backing, batch);
        return false;
    }
    if (was_queued)
        queued_ = queued_ - batch->bytes;
    heap_.give_back(*batch);
    batches_.give_back(batch);
    return true;
}

// Its blocks are no more.
void DeferredFrees::drop(Backing auto& backing, Batch* batch) {
    if (batch->fence)
        backing.drop_fence(batch->fence);
    batches_.give_back(batch);
}

}  // namespace cuslice
