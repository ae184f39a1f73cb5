// SPDX-License-Identifier: Apache-2.0
#include "policy/allocator/deferred_frees.h"

#include <algorithm>
#include <utility>

namespace cuslice {

namespace {

// Large blocks wait together until they are this much: for more it is worth asking the GPU.
constexpr uint64_t kDeferredLarge = 4 << 20;
constexpr uint64_t kDeferredShare = 1024;  // of what is held

// Without fences nobody knows how far the GPU has come, and it is waited for when so much is deferred.
constexpr uint64_t kMaxUnfenced = 64 << 20;
constexpr uint64_t kUnfencedShare = 4;  // of what is live

}  // namespace

Batch* DeferredFrees::new_batch(uint64_t bytes, bool* first) {
    UncancelledLockGuard lock(mutex_);
    *first = !oldest_;
    moved_.add(bytes);
    return batches_.take();
}

void DeferredFrees::give_back_record(Batch* batch) {
    UncancelledLockGuard lock(mutex_);
    batches_.give_back(batch);
}

void DeferredFrees::count_free(uint64_t bytes, uint64_t requested) {
    traffic_.free(bytes, requested);
    moved_.add(bytes);
}

// Room for one more block in all threads' batch.
bool DeferredFrees::add_to_shared(uint64_t bytes, Full* full) {
    full->first = !oldest_;
    if (!shared_)
        shared_ = batches_.take();
    if (shared_)
        shared_bytes_ += bytes;
    return shared_ != nullptr;
}

void DeferredFrees::take_if_full(Full* full) {
    const uint64_t enough = std::max(kDeferredLarge, heap_.held() / kDeferredShare);
    if (shared_->count < Batch::kMax && shared_->bytes < enough)
        return;
    full->batch = std::exchange(shared_, nullptr);
    shared_bytes_ = 0;
}

bool DeferredFrees::defer(const SmallBlock& block, unsigned size_class, uint64_t requested, Full* full) {
    const uint64_t bytes = SizeClass::bytes(size_class);
    UncancelledLockGuard lock(mutex_);
    count_free(bytes, requested);
    if (!add_to_shared(bytes, full))
        return false;
    shared_->add(block, size_class);
    take_if_full(full);
    return true;
}

bool DeferredFrees::defer(Block* block, Full* full) {
    UncancelledLockGuard lock(mutex_);
    count_free(block->bytes, block->requested);
    if (!add_to_shared(block->bytes, full))
        return false;
    block->state = Block::State::deferred;
    shared_->add(block);
    take_if_full(full);
    return true;
}

bool DeferredFrees::worth_own_fence(const Block& block) const {
    return reuse_ == Reuse::deferred && block.bytes >= std::max(kDeferredLarge, heap_.held() / kDeferredShare);
}

void DeferredFrees::queue_unfenced(Batch* batch) {
    LockGuard lock(mutex_);
    batch->next = oldest_;
    oldest_ = batch;
    if (!newest_)
        newest_ = batch;
    queued_ += batch->bytes;
    batch->number = ++last_number_;
}

Batch* DeferredFrees::take_oldest(uint64_t life) {
    UncancelledLockGuard lock(mutex_);
    Batch* batch = oldest_;
    if (!batch || !life_.is(life))
        return nullptr;
    oldest_ = batch->next;
    if (!oldest_)
        newest_ = nullptr;
    return batch;
}

Batch* DeferredFrees::take_shared(uint64_t life, bool* none_wait) {
    LockGuard lock(mutex_);
    *none_wait = !oldest_;
    if (!life_.is(life))
        return nullptr;
    shared_bytes_ = 0;
    return std::exchange(shared_, nullptr);
}

bool DeferredFrees::too_much(const Batch& batch, uint64_t out) const {
    LockGuard lock(mutex_);
    if (batch.number && batch.number <= quiet_up_to_)
        return true;
    const uint64_t waiting = queued_ + (batch.number ? 0 : batch.bytes);
    return waiting > kMaxUnfenced && waiting > out / kUnfencedShare;
}

}  // namespace cuslice
