#pragma once
#include <algorithm>
#include <cstdint>

#include "config/gpu_selector.h"
#include "config/settings.h"
#include "config/text.h"
#include "policy/base/mutex.h"
#include "policy/budget/allocation_table.h"
#include "policy/budget/budget.h"
#include "virtual_gpu/gpu/driver_part.h"
#include "virtual_gpu/gpu/memory_pools.h"
#include "virtual_gpu/gpu/primary_context.h"
#include "virtual_gpu/gpu/sharing.h"

namespace cuslice {

struct ContextCache;

// What a program is shown of a GPU's memory, in bytes.
struct MemoryView {
    std::uint64_t free = 0;
    std::uint64_t total = 0;
};

// One GPU as this process may use it: which one it is, how much of it is allowed, and what is charged. Everything but
// open() is thread-safe.
class VirtualGpu {
  public:
    struct Slice {
        bool limited = false;
        std::uint64_t limit = 0;                            // bytes, of what nvidia-smi shows for the process
        bool own_headroom = false;                          // false: derived from what the driver takes by itself
        std::uint64_t headroom = 0;                         // bytes
        FixedText<128> origin, group_origin;                // where the limits came from, for people
        std::uint64_t job_limit = ledger::kNoLimitBytes;    // bytes: `limit`, unless only a group has one
        std::uint64_t group_limit = ledger::kNoLimitBytes;  // bytes
        AllocatorMode allocator = AllocatorMode::direct;
        FreeMode free = FreeMode::strict;
        std::uint64_t idle_release = 0;  // milliseconds; 0: never
    };

    // Before any other thread knows of this GPU. `ordinal`: as the program counts; `identity`: as it is shown.
    void open(int ordinal, const GpuIdentity& identity, std::uint64_t total, const char* name, const Slice& slice);
    // And then, of a part of a physical GPU: that one's identity, and another part that was opened before; null if this
    // is the first one. `whole` is the GPU's own slice, which all parts are in; `together` the sum of their limits, in
    // bytes.
    void open_part(const GpuIdentity& physical, VirtualGpu* sibling, const Slice& whole, std::uint64_t together);

    int ordinal() const { return ordinal_; }
    CUdevice device() const { return ordinal_; }
    const GpuIdentity& identity() const { return identity_; }
    // What NVML knows it by.
    const GpuIdentity& physical() const { return is_part_ ? physical_ : identity_; }
    const char* name() const { return name_; }
    std::uint64_t physical_total() const { return total_; }
    const Slice& slice() const { return slice_; }
    bool limited() const { return slice_.limited; }
    // Whether freed memory is kept for later.
    bool caches() const { return slice_.allocator != AllocatorMode::direct; }

    // Where the limit came from that has refused something, for people.
    std::string_view origin_of(LimitOf limit) const {
        const Slice& slice =
            limit == LimitOf::whole_gpu || (is_part_ && limit == LimitOf::group) ? first_->whole_ : slice_;
        return limit == LimitOf::group ? slice.group_origin.view() : slice.origin.view();
    }

    // Becomes a member of the accounts that this slice is shared in, the first time: before the first context, or where
    // nobody saw that one begin, before the first byte that is reserved. False if others stand in the way, which
    // `refusal` names.
    bool join(const SharingPlan& plan, Refusal* refusal);

    // A context on this GPU is current in this thread, and no hook has seen how it began: what it has taken is charged.
    void meet_context();
    // False until something of this GPU has been measured: then a context may be there that isn't known yet.
    bool measured() const { return driver_part_open_.load(std::memory_order_acquire); }
    GpuSharing& sharing() { return sharing_; }
    // In a forked child: all of it is the parent's.
    void forget_sharing() {
        entered_.store(false, std::memory_order_relaxed);
        sharing_.forget(), whole_sharing_.forget();
    }
    const GpuSharing& sharing() const { return sharing_; }

    // Bytes that may be held: this process's own, or what it shares with others, as it is now.
    std::uint64_t limit() const {
        return sharing_.joined() ? std::min({sharing_.budget().limit(), total_, alone()}) : slice_.limit;
    }

    // Takes bytes before the driver is asked for them. Before it refuses, it reads again what can have shrunk: pools
    // (which are told to give back what they keep in reserve) and the driver's own part; and has cached memory given
    // back.
    bool reserve(std::uint64_t bytes, OverLimit* why) {
        if (!ready_for(bytes, why)) return false;
        return charge(bytes) || reserve_what_shrank(bytes, why);
    }

    // The same for a segment of a cache, which does what it can with its own memory.
    bool reserve_segment(std::uint64_t bytes, const ContextCache& cache, OverLimit* why);

    // Whether another process that shares the limit has asked for cached memory since this was asked last.
    bool asked_to_trim();
    // Tells them how much is cached here that they could have.
    void tell_siblings();

    // Bytes that can be reserved as things stand.
    std::uint64_t room() const;

    // The same without telling pools to give anything back.
    bool reserve_at_once(std::uint64_t bytes) { return ready_for(bytes, nullptr) && charge(bytes); }

    // False if more is held than the limit allows: something took more than was foreseen, and should be undone.
    bool within_limit(OverLimit* why) const {
        if (sharing_.joined() && sharing_.budget().over(why)) return false;
        const std::uint64_t used = budget_.used(), most = own_limit();
        if (used <= most) return true;
        if (why) *why = {.used = used, .ceiling = most, .limit = most};
        return false;
    }

    // Around a call in which the driver may take or give back memory by itself. Calls of this kind are serialised per
    // GPU only while they are measured, never while the driver works.
    DriverPart::Step before_driver_step(bool makes_context = false);
    // Whether what the driver gives back has to be measured around the call; else its figure says so at any time.
    bool measures_steps() const { return !driver_part_.exact(); }
    // Charges what the driver will take in the step at least, until it is measured. It may have what is set aside for
    // the driver, too. False if it doesn't fit: nothing is charged then, and the driver need not be asked.
    bool foresee(DriverPart::Step& step, std::uint64_t bytes, OverLimit* why);
    // False if the total is over the limit now, so that the caller can undo what it did.
    bool after_driver_step(DriverPart::Step& step, OverLimit* why);
    // The same after the end of a context, which may have been the last.
    void after_context_end(DriverPart::Step& step);

    // After cuMemFree and the like: no context of this GPU is needed for any of these.
    Budget& budget() { return budget_; }
    MemoryPools& pools() { return pools_; }
    const MemoryPools& pools() const { return pools_; }
    PrimaryContext& primary() { return primary_; }

    // The driver's part has become smaller: it is read again before anybody sees a figure or is refused.
    void driver_gave_back() { stale_.store(true, std::memory_order_relaxed); }

    // Bytes that the driver will have back at a time of its own: they stay charged until they are seen to be gone.
    void release_later(std::uint64_t bytes);

    // Bytes that the program has given back and the driver may not have: another process still holds them, or they are
    // in allocations of a pool that is gone. They stay charged until the driver's figure says that they are free; where
    // there is none, to the end of the process.
    void release_shared(std::uint64_t bytes);

    // Some memory that has no record is part of the driver's from now on: allocations of a pool that is gone, or of
    // another process. Its free makes that part smaller.
    void watch_frees() {
        watch_frees_.store(true, std::memory_order_relaxed);
        some_watches_.store(true, std::memory_order_relaxed);
    }
    // Whether any GPU is watched: for whoever would have to ask the driver which one it is.
    static bool some_watches_frees() { return some_watches_.load(std::memory_order_relaxed); }
    bool watches_frees() const { return watch_frees_.load(std::memory_order_relaxed); }

    // Reads pools and the driver's part again.
    void refresh(bool trim_pools = false);
    // The same, if anything is known to have become smaller.
    void refresh_if_stale();
    // Blocks of a cache have gone from hand to hand: looks at what the driver has taken meanwhile, and where the total
    // is over the limit gives back what nobody uses. Siblings are told what could be had.
    void look_at_cached();

    // The slice, given what the driver says is physically free and there at all. Free is what an allocation could
    // really get: the limit less headroom less everything charged, and never more than is physically free.
    MemoryView view(std::uint64_t physical_free);

    // Managed memory came (or went, negative): it is charged in full, wherever the driver keeps it.
    void managed_changed(std::int64_t bytes) {
        managed_.fetch_add(static_cast<std::uint64_t>(bytes), std::memory_order_relaxed);
    }

    std::uint64_t driver_part() const { return __atomic_load_n(&driver_bytes_, __ATOMIC_RELAXED); }
    std::uint64_t headroom() const;
    Mutex& mutex() { return mutex_; }

  private:
    bool enter(std::uint64_t bytes, OverLimit* why) {
        return entered_.load(std::memory_order_acquire) || enter_now(bytes, why);
    }
    bool enter_now(std::uint64_t bytes, OverLimit* why);
    // What comes before any reservation.
    bool ready_for(std::uint64_t bytes, OverLimit* why) {
        if (!enter(bytes, why)) [[unlikely]]
            return false;
        look_before(bytes);
        return true;
    }
    DriverPart::State driver_state() const;
    std::uint64_t steps_of_all() const;
    // A part's own limit, and where the parts may be more than the GPU's slice together, that one's.
    bool charge(std::uint64_t bytes, OverLimit* why = nullptr) {
        if (!budget_.reserve(bytes, why)) [[unlikely]] {
            if (why && !why->limit) why->limit = own_limit();
            return false;
        }
        return !first_->whole_limit_ || fits_in_whole(bytes, why);
    }
    bool fits_in_whole(std::uint64_t bytes, OverLimit* why);
    // What members of the accounts held that have died.
    void take_back_dead() {
        sharing_.take_back_dead();
        first_->whole_sharing_.take_back_dead();
    }
    // Where the accounts' file is gone and has another one in its place: what others hold, and what they ask for, is
    // there. A reservation finds that out by being refused, and nothing else does.
    void follow_file() {
        if (sharing_.joined() && sharing_.budget().retired()) [[unlikely]]
            follow_file_now();
    }
    void follow_file_now();
    bool charge_after_looking(std::uint64_t bytes, OverLimit* why);
    bool reserve_what_shrank(std::uint64_t bytes, OverLimit* why);
    bool reserve_of_siblings(std::uint64_t bytes, OverLimit* why);
    // Before bytes are reserved: looks at what the driver has taken unasked, if it is time for it. What it takes
    // unasked is seen at the latest when the allocations have grown by as much as was set aside for it, from wherever
    // they were at their lowest since the last look (but see worth_looking()).
    void look_before(std::uint64_t bytes) {
        const std::uint64_t used = budget_.used(), above = look_above_.load(std::memory_order_relaxed);
        const std::uint64_t growth = look_after_.load(std::memory_order_relaxed);
        if (used > above || bytes > above - used || above - used > growth) [[unlikely]]
            look_now_or_sooner(used, bytes);
    }
    void look_now_or_sooner(std::uint64_t used, std::uint64_t bytes);
    // What this process may hold by itself of a limit that it shares: where the accounts are a group's alone, its own
    // limit is in none of them.
    std::uint64_t alone() const { return process_limit_.load(std::memory_order_relaxed); }
    std::uint64_t own_limit() const { return sharing_.joined() ? alone() : slice_.limit; }
    std::uint64_t unseen() const;
    bool due();
    bool worth_looking() const;
    void look();
    void publish();
    void open_driver_part();
    std::uint64_t used_by_all() const;
    std::uint64_t used_by_others();
    bool join_whole(const SharingPlan& plan, Refusal* refusal);
    // Of all parts of the physical GPU.
    std::uint64_t managed() const;
    DriverPart::Budgets budgets();
    std::uint64_t used_together() const;
    // Over the driver's part: one for all parts of a physical GPU, as they have one figure.
    Mutex& part_mutex() { return first_->mutex_; }

    int ordinal_ = -1;
    bool is_part_ = false;
    GpuIdentity identity_, physical_;
    VirtualGpu *first_ = this, *next_part_ = nullptr;  // the parts of the physical GPU
    const Budget* others_[DriverPart::kMostParts] = {};
    std::size_t other_count_ = 0;
    // The first part's, for all: the whole GPU's slice and its accounts; and its limit, if the parts' are more
    // together.
    Slice whole_;
    GpuSharing whole_sharing_;
    std::uint64_t whole_limit_ = 0;
    char name_[96] = {};
    std::uint64_t total_ = 0;
    Slice slice_;
    std::atomic<std::uint64_t> process_limit_{Budget::kUnlimited};

    Budget budget_;
    GpuSharing sharing_;
    MemoryPools pools_;
    PrimaryContext primary_;
    std::atomic<std::uint64_t> managed_{0};
    std::atomic<std::uint32_t> wanted_seen_{0};
    std::atomic<bool> entered_{false};  // a member of the accounts, or there are none
    std::atomic<bool> stale_{false};
    std::atomic<bool> watch_frees_{false};
    static constinit std::atomic<bool> some_watches_;
    Mutex mutex_;  // over driver_part_ and what follows from it
    DriverPart driver_part_;
    std::atomic<bool> driver_part_open_{false};
    std::uint64_t driver_bytes_ = 0;            // a copy for readers without the lock
    std::atomic<std::uint64_t> look_above_{0};  // bytes in use from which on the driver's part is read again
    std::atomic<std::uint64_t> look_after_{0};  // bytes granted after which it is
    std::atomic<std::uint64_t> unseen_{0};      // at the last look
    std::atomic<unsigned> vain_looks_{0};       // in a row, that found the driver's part as it was
    std::atomic<unsigned> vain_times_{0};       // in a row, that it was asked whether to look
    std::atomic<std::int64_t> looked_at_{0};    // milliseconds
    std::atomic<bool> giving_back_{false};
    // The last wait for siblings was in vain: how they stood then, and until when it would be again, in milliseconds.
    std::atomic<std::uint64_t> siblings_{0};
    std::atomic<std::int64_t> no_wait_until_{0};
};

}  // namespace cuslice
