// Freed blocks on their way back: from a batch, past a fence, to where they can be had again.
#include <algorithm>
#include <bit>
#include <utility>

#include "policy/allocator/caching_allocator.h"
#include "policy/base/cancellation.h"

namespace cuslice {

namespace {

// A thread's batch that is not full, when it needs blocks: from here on it is worth a fence, as taking others instead
// would take more memory than that is worth.
constexpr std::uint64_t kWorthAFence = 1 << 20;

// Large blocks wait together until they are this much: for more it is worth asking the GPU.
constexpr std::uint64_t kDeferredLarge = 4 << 20;
constexpr std::uint64_t kDeferredShare = 1024;  // of what is held

// Without fences nobody knows how far the GPU has come, and it is waited for when so much is deferred.
constexpr std::uint64_t kMaxUnfenced = 64 << 20;
constexpr std::uint64_t kUnfencedShare = 4;  // of what is live

}  // namespace

// By whoever holds the cache's lock.
Batch* CachingAllocator::take_open(ThreadCache& cache, Batch* ThreadCache::*which) {
    if (!(cache.*which) || !(cache.*which)->count) return nullptr;
    Batch* open = std::exchange(cache.*which, nullptr);
    cache.deferred.add(0 - open->bytes);
    return open;
}

// With the lock held. Null if the kernel gives no memory.
Batch* CachingAllocator::deferral_place() {
    if (!open_) open_ = batches_.take();
    return open_;
}

Batch* CachingAllocator::if_full(Batch* batch) {
    if (batch->count < Batch::kMax && batch->bytes < std::max(kDeferredLarge, segments_.bytes() / kDeferredShare))
        return nullptr;
    open_ = nullptr;
    return batch;
}

// With the lock held, for blocks that are in no thread's batch. Returns a batch that the caller is to queue without it.
Batch* CachingAllocator::defer(const SmallBlock& block, unsigned size_class) {
    Batch* batch = deferral_place();
    if (!batch) {
        abandoned_ += SizeClass::bytes(size_class);  // nowhere to write down that it can be used again
        return nullptr;
    }
    batch->add(block, size_class);
    return if_full(batch);
}

Batch* CachingAllocator::defer(Block* block) {
    Batch* batch = deferral_place();
    if (!batch) {
        segments_.abandon(block);
        abandoned_ += block->bytes;
        return nullptr;
    }
    block->state = Block::State::deferred;
    batch->add(block);
    return if_full(batch);
}

// A block that is as much as others wait for together need not wait for them.
bool CachingAllocator::worth_own_fence(const Block& block) const {
    return options_.reuse == Reuse::deferred && block.bytes >= std::max(kDeferredLarge, reserved() / kDeferredShare);
}

// With the lock held. With a fence, if there is one, that was made after it was freed.
Batch* CachingAllocator::defer_alone(Block* block, Fence fence) {
    Batch* batch = batches_.take();
    if (!batch) {
        if (fence) backing_.drop_fence(backing_.self, fence);
        return defer(block);
    }
    block->state = Block::State::deferred;
    batch->add(block);
    batch->fence = fence;
    return batch;
}

// Without the lock. Among those of its own thread, which keeps them once the GPU has come past. False if it is too
// large for that.
bool CachingAllocator::defer_own(Block* block) {
    if (options_.reuse == Reuse::strict || block->bytes > KeptBlocks::kMaxBytes) return false;
    ThreadCache* cache = thread_caches;
    if (!cache || cache->owner != this) {
        const DisableCancellation uncancelled;
        cache = own_cache();
    }
    if (!cache || !cache->lock.enter()) return false;
    Batch* open = cache->open_large;
    const bool room = open && open->count < Batch::kMax && open->bytes + block->bytes <= cache->kept.limit();
    if (room) [[likely]] {
        open->add(block);
        cache->deferred.add(block->bytes);
        cache->traffic.free(block->bytes, block->requested);
        block->requested = 0;
    }
    cache->lock.leave();
    return room || defer_own_slowly(*cache, block);
}

// The next batch begins with this block.
bool CachingAllocator::defer_own_slowly(ThreadCache& cache, Block* block) {
    const DisableCancellation uncancelled;
    const Changing changing(*this);
    if (!cache.lock.enter()) return false;
    const std::uint64_t limit = cache.kept.limit(), deferred = cache.open_large ? cache.open_large->bytes : 0;
    cache.lock.leave();
    if (limit < KeptBlocks::kMaxBytes && deferred + block->bytes > limit) keep_more(cache, deferred + block->bytes);
    Batch *next = nullptr, *full = nullptr;
    bool first = false, room = false;
    {
        LockGuard lock(mutex_);
        first = !oldest_;
        next = batches_.take();
        moved(block->bytes);
    }
    if (!next) return false;
    if (cache.lock.enter()) {
        Batch*& open = cache.open_large;
        room = block->bytes <= cache.kept.limit();
        if (room && open && (open->count == Batch::kMax || open->bytes + block->bytes > cache.kept.limit()))
            full = take_open(cache, &ThreadCache::open_large);
        if (room) {
            if (!open) open = std::exchange(next, nullptr);
            open->add(block);
            cache.deferred.add(block->bytes);
            cache.traffic.free(block->bytes, block->requested);
            block->requested = 0;
        }
        cache.lock.leave();
    }
    if (next) {
        LockGuard lock(mutex_);
        batches_.give_back(next);
    }
    if (full) queue_full(full, first);
    return room;
}

// With the lock held: its blocks are no more.
void CachingAllocator::drop(Batch* batch) {
    if (batch->fence) backing_.drop_fence(backing_.self, batch->fence);
    batches_.give_back(batch);
}

// Without the lock. The fence comes after everything that could have used the batch's blocks.
void CachingAllocator::queue(Batch* batch, std::uint64_t life) {
    if (!batch->fence && options_.reuse == Reuse::deferred)
        batch->fence = backing_.fence(backing_.self, batch->address());
    LockGuard lock(mutex_);
    if (!lives(life)) return drop(batch);
    batch->next = nullptr;
    (newest_ ? newest_->next : oldest_) = batch;
    newest_ = batch;
    queued_ += batch->bytes;
    number(batch);
}

// With the lock held, of a batch that begins to wait.
void CachingAllocator::number(Batch* batch) { batch->number = ++last_number_; }

// A batch that was filled is the time to see what has become of the earlier ones. If it is the `first`, it may not have
// to wait itself.
void CachingAllocator::queue_full(Batch* batch, bool first) {
    const DisableCancellation uncancelled;
    const std::uint64_t life = life_.load(std::memory_order_acquire);
    if (first && passed(batch, false)) {
        keep_own(batch, life);
        hand_back(batch, life, false);
        return;
    }
    queue(batch, life);
    if (!first) reuse_deferred(false, false);
}

Batch* CachingAllocator::next_deferred(std::uint64_t life) {
    LockGuard lock(mutex_);
    Batch* batch = oldest_;
    if (!batch || !lives(life)) return nullptr;
    oldest_ = batch->next;
    if (!oldest_) newest_ = nullptr;
    return batch;
}

void CachingAllocator::defer_again(Batch* batch, std::uint64_t life) {
    LockGuard lock(mutex_);
    if (!lives(life)) return drop(batch);
    batch->next = oldest_;
    oldest_ = batch;
    if (!newest_) newest_ = batch;
}

bool CachingAllocator::passed(Batch* batch, bool wait) {
    if (!batch->fence && options_.reuse == Reuse::deferred) {
        if (backing_.past(backing_.self, batch->address(), &batch->fence)) return true;
        if (batch->fence && !wait) return false;
    }
    if (batch->fence) {
        if (!backing_.passed(backing_.self, batch->fence, wait)) return false;
        batch->fence = 0;
        return true;
    }
    // There is no fence to be had. Waiting for everything is as good.
    const bool ask = wait || options_.reuse == Reuse::strict || too_much_deferred(*batch);
    return ask && quiesce(*batch);
}

// Without the lock. One wait is enough for all batches that waited when it began.
bool CachingAllocator::quiesce(const Batch& batch) {
    std::uint64_t last = 0;
    {
        LockGuard lock(mutex_);
        if (batch.number && batch.number <= quiet_up_to_) return true;
        last = last_number_;
    }
    if (backing_.quiesce(backing_.self, batch.address(), false) != 0) return false;
    LockGuard lock(mutex_);
    quiet_up_to_ = std::max(quiet_up_to_, last);
    return true;
}

bool CachingAllocator::too_much_deferred(const Batch& batch) {
    LockGuard lock(mutex_);
    if (batch.number && batch.number <= quiet_up_to_) return true;
    const std::uint64_t deferred = queued_ + (batch.number ? 0 : batch.bytes);
    return deferred > kMaxUnfenced && deferred > total_traffic().out() / kUnfencedShare;
}

// Puts a batch's small blocks into this thread's own store, as far as there is room. Those that are left are first in
// it.
void CachingAllocator::keep_own(Batch* batch, std::uint64_t life) {
    ThreadCache* cache = thread_caches;
    if (!cache || cache->owner != this || !cache->lock.enter()) return;
    // Whoever closes the allocator empties this cache after it has said so.
    if (!lives(life)) return cache->lock.leave();
    std::uint32_t i = 0, left = 0;
    // Mostly they are of one size.
    const std::uint32_t classes = batch->classes;
    if (classes && !(classes & (classes - 1)) && classes != Batch::kLarge) {
        Magazine& magazine = cache->magazines[std::countr_zero(classes)];
        const std::uint32_t room = std::min<std::uint32_t>(batch->count, magazine.capacity - magazine.count);
        for (; i < room; i++) magazine.slots[magazine.count + i] = Batch::small(batch->blocks[i]);
        magazine.count = static_cast<std::uint16_t>(magazine.count + room);
    }
    for (; i < batch->count; i++) {
        const Batch::Deferred deferred = batch->blocks[i];
        if (Block* block = Batch::large(deferred)) {
            // One that was deferred for all threads to have is theirs.
            if (block->state == Block::State::used && cache->kept.add(block)) continue;
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

// With the lock held, of a batch that the GPU has come past.
void CachingAllocator::return_batch(Batch* batch) {
    for (std::uint32_t i = 0; i < batch->count; i++) {
        if (Block* block = Batch::large(batch->blocks[i]))
            segments_.give_back(block);
        else
            spans_.give_back(Batch::small(batch->blocks[i]).address);
    }
    batches_.give_back(batch);
}

// Makes available what the GPU has come past; with `large`, of large blocks also those that were freed last, and those
// that this thread keeps; with `wait`, everything that has been freed so far. True if it was anything.
bool CachingAllocator::reuse_deferred(bool wait, bool large) {
    // The context may end in the meantime, and the allocator be another one's: what was taken out before is no more.
    const std::uint64_t life = life_.load(std::memory_order_acquire);
    ThreadCache* cache = thread_caches;
    Batch *own = nullptr, *own_large = nullptr;
    KeptBlocks kept;
    if (cache && cache->owner == this && cache->lock.enter()) {
        if (cache->open && (wait || cache->open->bytes >= kWorthAFence)) own = take_open(*cache, &ThreadCache::open);
        if (wait || large) own_large = take_open(*cache, &ThreadCache::open_large);
        if (large) kept = cache->kept.take_all();
        cache->lock.leave();
    }
    Batch* shared = nullptr;
    bool any = false, alone = false;
    if (wait || large) {
        LockGuard lock(mutex_);
        if (!lives(life)) kept.forget();
        if (lives(life)) std::swap(shared, open_);
        for (; Block* block = kept.take_newest(); any = true) segments_.give_back(block);
        alone = !own && !(own_large && shared) && !oldest_;
    }
    if (own) queue(own, life);
    if (own_large) std::swap(own_large, shared);
    // Mostly nothing waits before it, and it doesn't have to wait either.
    if (shared && alone && !wait) {
        if (passed(shared, false)) return hand_back(shared, life, false) || any;
        queue(shared, life);
        return any;
    }
    for (Batch* freed : {shared, own_large})
        if (freed) queue(freed, life);

    while (Batch* batch = next_deferred(life)) {
        if (!passed(batch, wait)) {
            defer_again(batch, life);
            break;
        }
        if (wait)
            syncs_.fetch_add(1, std::memory_order_relaxed);
        else
            keep_own(batch, life);
        if (!hand_back(batch, life, true)) break;
        any = true;
    }
    return any;
}

// A block of so many bytes out of the batch of large ones that this thread has filled itself, if the GPU has come past
// it: the thread keeps the others. 0 if it has none, or the GPU has not. The caller has a DeferCancellation.
std::uint64_t CachingAllocator::from_deferred(std::uint64_t bytes) {
    ThreadCache* cache = thread_caches;
    const std::uint64_t life = life_.load(std::memory_order_acquire);
    if (options_.reuse == Reuse::strict || !cache || cache->owner != this || !cache->lock.enter()) return 0;
    cache->none_from = ThreadCache::kNotKnown;
    Batch* batch = take_open(*cache, &ThreadCache::open_large);
    cache->lock.leave();
    if (!batch) return 0;
    const DisableCancellationState in_the_driver;
    if (!passed(batch, false)) {
        queue(batch, life);
        return 0;
    }
    std::uint64_t address = 0;
    if (cache->lock.enter()) {
        // Whoever closes the allocator empties this cache after it has said so.
        if (lives(life)) {
            std::uint32_t left = 0;
            for (std::uint32_t i = 0; i < batch->count; i++)
                if (!cache->kept.add(Batch::large(batch->blocks[i]))) batch->blocks[left++] = batch->blocks[i];
            batch->count = left;
            if ((address = take_kept(*cache, bytes))) cache->none_from = bytes;
            // Empty, it is there for the next ones.
            if (!left && !cache->open_large) {
                batch->clear();
                cache->open_large = std::exchange(batch, nullptr);
            }
        }
        cache->lock.leave();
    }
    if (batch) hand_back(batch, life, false);
    return address;
}

// Of a batch that the GPU has come past. False if the allocator has been closed meanwhile.
bool CachingAllocator::hand_back(Batch* batch, std::uint64_t life, bool was_queued) {
    LockGuard lock(mutex_);
    if (!lives(life)) {
        drop(batch);
        return false;
    }
    if (was_queued) queued_ -= batch->bytes;
    return_batch(batch);
    return true;
}

}  // namespace cuslice
