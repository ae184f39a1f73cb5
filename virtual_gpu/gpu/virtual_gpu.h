// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "config/gpu_selector.h"
#include "policy/budget/budget.h"
#include "virtual_gpu/gpu/cache_of_unseen.h"
#include "virtual_gpu/gpu/footprint_polling.h"
#include "virtual_gpu/gpu/memory_pools.h"
#include "virtual_gpu/gpu/physical_gpu.h"
#include "virtual_gpu/gpu/primary_context.h"
#include "virtual_gpu/gpu/siblings.h"
#include "virtual_gpu/gpu/slice.h"
#include "virtual_gpu/gpu/unrecorded_frees.h"

namespace cuslice {

struct ContextCache;

// One GPU as this process may use it: which one it is, how much of it is allowed, and what is charged. Sizes are in
// bytes. Everything but open() is thread-safe.
class VirtualGpu {
  public:
    // Before any other thread knows of this GPU. `ordinal`: as the program counts; `identity`: as it is shown;
    // `physical`: the GPU that it is, or is a part of.
    void open(int ordinal, const GpuIdentity& identity, PhysicalGpu& physical, const char* name, const Slice& slice);

    int ordinal() const { return ordinal_; }
    CUdevice device() const { return ordinal_; }
    const GpuIdentity& identity() const { return identity_; }
    PhysicalGpu& physical() const { return *physical_; }
    const char* name() const { return name_; }
    const Slice& slice() const { return slice_; }
    // True if its memory is counted: there is a limit, or a group that may come to have one.
    bool limited() const { return slice_.limited; }
    // There is a limit now, and the program is shown it in place of the GPU.
    bool bound() const {
        return slice_.bound || siblings_.own_limit(Budget::kUnlimited) != Budget::kUnlimited ||
               (siblings_.joined() && siblings_.sharing().budget().limit() != ledger::kNoLimitBytes);
    }
    // True if freed memory is kept for later.
    bool caches() const { return slice_.allocator != AllocatorMode::direct; }

    // After cuMemFree and the like: no context of this GPU is needed for any of these.
    Budget& budget() { return budget_; }
    MemoryPools& pools() { return pools_; }
    const MemoryPools& pools() const { return pools_; }
    PrimaryContext& primary() { return primary_; }
    Siblings& siblings() { return siblings_; }
    const Siblings& siblings() const { return siblings_; }
    const FootprintPolling& polling() const { return polling_; }
    UnrecordedFrees& unrecorded_frees() { return unrecorded_frees_; }

    // Becomes a member of the accounts that this slice is shared in, the first time: before the first context, or where
    // nobody saw that one begin, before the first byte that is reserved. False if others stand in the way, which
    // `refusal` names.
    bool join(Refusal* refusal);
    // The same before the first byte, and charges a context that no hook has seen begin. False with `why` where `bytes`
    // can't be had since the slice itself is refused.
    bool enter(uint64_t bytes, LimitError* why, CacheOfUnseen cache = CacheOfUnseen::prepared) {
        return entered_.load(std::memory_order_acquire) || enter_now(bytes, why, cache);
    }
    // A context has ended: the next one may begin where no hook is, and is looked for before anything is granted.
    void context_gone() {
        for (VirtualGpu* part : physical_->parts())
            part->entered_.store(false, std::memory_order_release);
    }
    // In a forked child: all of it is the parent's.
    void forget_sharing() {
        entered_.store(false, std::memory_order_relaxed);
        siblings_.forget();
    }

    // False until something of this GPU has been measured: then a context may be there that isn't known yet.
    bool measured() const { return measured_.load(std::memory_order_acquire); }
    // The driver's footprint can be read from now on.
    void begin_measured() { measured_.store(true, std::memory_order_release); }

    // Bytes that may be held: this process's own, or what it shares with others, as it is now.
    uint64_t limit() const {
        if (!siblings_.joined())
            return siblings_.own_limit(slice_.limit);
        return std::min({siblings_.sharing().budget().limit(), physical_->total(), siblings_.process_limit()});
    }
    // Bytes that can be reserved as things stand.
    uint64_t room() const;
    // False if more is held than the limit allows: something took more than was foreseen, and should be undone.
    [[gnu::always_inline]] bool within_limit(LimitError* why) const {
        const bool joined = siblings_.joined();
        if (joined && siblings_.sharing().budget().over(why))
            return false;
        const uint64_t used = budget_.used(), most = siblings_.own_limit(slice_.limit);
        if (used <= most)
            return true;
        if (why)
            *why = {.used = used, .ceiling = most, .limit = most};
        return false;
    }
    // Bytes that the driver takes by itself; for a partition, its share.
    uint64_t driver_footprint() const { return __atomic_load_n(&driver_bytes_, __ATOMIC_RELAXED); }
    // Bytes kept free within such a limit for what the driver takes unasked.
    uint64_t headroom(LimitOf of = LimitOf::process) const;

    // Takes bytes before the driver is asked for them. Before it refuses, it reads again what can have shrunk: pools
    // (which are told to give back what they keep in reserve) and the driver's own footprint; and has cached memory
    // given back.
    bool reserve(uint64_t bytes, LimitError* why) {
        if (!ready_for(bytes, why))
            return false;
        return charge(bytes) || reserve_what_shrank(bytes, why);
    }
    // The same for a segment of a cache, which does what it can with its own memory.
    bool reserve_segment(uint64_t bytes, const ContextCache& cache, LimitError* why) {
        if (!ready_for(bytes, why, CacheOfUnseen::left))
            return false;
        return charge(bytes) || reserve_what_shrank(bytes, why, &cache);
    }
    // The same without telling pools to give anything back.
    bool reserve_at_once(uint64_t bytes) { return ready_for(bytes, nullptr) && charge(bytes); }

    // The driver's footprint has become smaller: it is read again before anybody sees a figure or is refused, on
    // whichever part of the GPU.
    void driver_gave_back() {
        for (VirtualGpu* part : physical_->parts())
            part->polling_.set_stale();
        siblings_.given_back().publish_settled();
    }
    // Reads pools and the driver's footprint again.
    void refresh(bool trim_pools = false);
    // The same, if anything is known to have become smaller.
    void refresh_if_stale();
    // Blocks of a cache have gone from hand to hand: polls what the driver has taken meanwhile, and where the total is
    // over the limit gives back what nobody uses. Siblings are told what could be had.
    void poll_cached();

  private:
    bool enter_now(uint64_t bytes, LimitError* why, CacheOfUnseen cache);
    // Runs before every reservation: what the driver takes unasked is seen at the latest when the allocations have
    // grown by as much as was set aside for it (but see worth_polling()).
    bool ready_for(uint64_t bytes, LimitError* why, CacheOfUnseen cache = CacheOfUnseen::prepared) {
        if (!enter(bytes, why, cache)) [[unlikely]]
            return false;
        if (const uint64_t used = budget_.used(); polling_.at_mark(used, bytes)) [[unlikely]]
            poll_at_mark(used, bytes);
        return true;
    }
    // A part's own limit, and where the parts may be more than the GPU's slice together, that one's.
    bool charge(uint64_t bytes, LimitError* why = nullptr) {
        if (!budget_.reserve(bytes, why)) [[unlikely]] {
            if (why && !why->limit)
                why->limit = limit();
            return false;
        }
        return !physical_->limit_of_all() || fits_in_whole(bytes, why);
    }
    bool fits_in_whole(uint64_t bytes, LimitError* why);
    bool reserve_what_shrank(uint64_t bytes, LimitError* why, const ContextCache* segment_of = nullptr);

    void poll_at_mark(uint64_t used, uint64_t bytes);
    bool worth_polling(uint64_t bytes);
    void poll_footprint();
    void publish(uint64_t driver_bytes);

    int ordinal_ = -1;
    GpuIdentity identity_;
    PhysicalGpu* physical_ = nullptr;
    char name_[96] = {};
    Slice slice_;

    Budget budget_;
    Siblings siblings_;
    MemoryPools pools_;
    PrimaryContext primary_;
    std::atomic<bool> entered_{false};  // nothing is left to be done before a reservation
    std::atomic<bool> measured_{false};
    std::atomic<bool> giving_back_{false};
    UnrecordedFrees unrecorded_frees_;
    uint64_t driver_bytes_ = 0;  // its share of what the driver takes: for readers without the lock
    FootprintPolling polling_;
};

// Sets how many bytes the program wants to hold at most, within its limit; ~0: as many as it may. What is held already
// stays, but for what caches can give back. Thread-safe.
void lower_limit(VirtualGpu& gpu, uint64_t bytes);

// Where a limit of so many bytes came from, that has refused something, for people.
std::string_view origin_of(const VirtualGpu& gpu, LimitOf of, uint64_t bytes);

}  // namespace cuslice
