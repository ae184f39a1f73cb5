#pragma once
#include <algorithm>
#include <cstdint>

#include "config/gpu_selector.h"
#include "policy/base/mutex.h"
#include "policy/budget/allocation_table.h"
#include "policy/budget/budget.h"
#include "virtual_gpu/gpu/cache_of_unseen.h"
#include "virtual_gpu/gpu/memory_pools.h"
#include "virtual_gpu/gpu/physical_gpu.h"
#include "virtual_gpu/gpu/primary_context.h"
#include "virtual_gpu/gpu/sharing.h"
#include "virtual_gpu/gpu/slice.h"

namespace cuslice {

struct ContextCache;

// A GPU's memory as the program is shown it, in bytes.
struct MemoryView {
    std::uint64_t free = 0;
    std::uint64_t total = 0;
};

// One GPU as this process may use it: which one it is, how much of it is allowed, and what is charged. Everything but
// open() is thread-safe.
class VirtualGpu {
  public:
    // Before any other thread knows of this GPU. `ordinal`: as the program counts; `identity`: as it is shown;
    // `physical`: the GPU that it is, or is a part of.
    void open(int ordinal, const GpuIdentity& identity, PhysicalGpu& physical, const char* name, const Slice& slice);

    int ordinal() const { return ordinal_; }
    CUdevice device() const { return ordinal_; }
    const GpuIdentity& identity() const { return identity_; }
    const PhysicalGpu& physical() const { return *physical_; }
    const char* name() const { return name_; }
    const Slice& slice() const { return slice_; }
    // True if its memory is counted: there is a limit, or a group that may come to have one.
    bool limited() const { return slice_.limited; }
    // There is a limit now, and the program is shown it in place of the GPU.
    bool bound() const {
        return slice_.bound || (sharing_.joined() && sharing_.budget().limit() != ledger::kNoLimitBytes);
    }
    // True if freed memory is kept for later.
    bool caches() const { return slice_.allocator != AllocatorMode::direct; }

    // The GPU's own slice, where this is a part of it: groups and rules are joined for all of its parts together.
    const Slice& whole_slice() const { return physical_->is_split() ? physical_->slice() : slice_; }

    // Where the limit came from, of so many bytes, that has refused something, for people.
    std::string_view origin_of(LimitOf limit, std::uint64_t bytes) const {
        const Slice& whole = whole_slice();
        if (limit == LimitOf::rule) return whole.rule_origin.view();
        // Another member may have brought it.
        if (limit == LimitOf::group) return bytes == whole.group_limit ? whole.group_origin.view() : "the group";
        return limit == LimitOf::whole_gpu ? whole.origin.view() : slice_.origin.view();
    }
    // How this process found its group when it joined it; null: it has joined none.
    const ledger::GroupTerms* found_group() const {
        return (physical_->is_split() ? physical_->sharing() : sharing_).budget().found_group();
    }

    // Becomes a member of the accounts that this slice is shared in, the first time: before the first context, or where
    // nobody saw that one begin, before the first byte that is reserved. False if others stand in the way, which
    // `refusal` names.
    bool join(const SharingPlan& plan, Refusal* refusal);

    // A context on this GPU is current in this thread, and no hook has seen how it began: what it has taken is charged.
    void meet_context();
    // A context has ended: the next one may begin where no hook is, and is looked for before anything is granted.
    void context_gone() {
        for (VirtualGpu* part : physical_->parts()) part->entered_.store(false, std::memory_order_release);
    }
    // False until something of this GPU has been measured: then a context may be there that isn't known yet.
    bool measured() const { return measured_.load(std::memory_order_acquire); }
    GpuSharing& sharing() { return sharing_; }
    // In a forked child: all of it is the parent's.
    void forget_sharing() {
        entered_.store(false, std::memory_order_relaxed);
        is_member_.store(false, std::memory_order_relaxed);
        in_accounts_ = false;
        sharing_.forget(), physical_->sharing().forget();
    }
    const GpuSharing& sharing() const { return sharing_; }

    // Bytes that may be held: this process's own, or what it shares with others, as it is now.
    std::uint64_t limit() const {
        return sharing_.joined() ? std::min({sharing_.budget().limit(), physical_->total(), alone()}) : slice_.limit;
    }

    // The same for whoever asks before the first context: what the group has by then is in the ledger.
    std::uint64_t limit_to_come();

    // Takes bytes before the driver is asked for them. Before it refuses, it reads again what can have shrunk: pools
    // (which are told to give back what they keep in reserve) and the driver's own footprint; and has cached memory
    // given back.
    bool reserve(std::uint64_t bytes, LimitError* why) {
        if (!ready_for(bytes, why)) return false;
        return charge(bytes) || reserve_what_shrank(bytes, why);
    }

    // The same for a segment of a cache, which does what it can with its own memory.
    bool reserve_segment(std::uint64_t bytes, const ContextCache& cache, LimitError* why);

    // True if another process that shares the limit has asked for cached memory since the last call.
    bool asked_to_trim();
    // Tells them how much is cached here that they could have.
    void tell_siblings();

    // The most bytes that have been charged so far, or somewhat more: what is set aside for the driver is the margin.
    std::uint64_t most_used() const {
        return most_used_.load(std::memory_order_relaxed) + look_after_.load(std::memory_order_relaxed);
    }

    // Bytes that can be reserved as things stand.
    std::uint64_t room() const;
    // The same once `given_back` of what is charged here has gone back.
    std::uint64_t room_after(std::uint64_t given_back) const;

    // The same without telling pools to give anything back.
    bool reserve_at_once(std::uint64_t bytes) { return ready_for(bytes, nullptr) && charge(bytes); }

    // False if more is held than the limit allows: something took more than was foreseen, and should be undone.
    bool within_limit(LimitError* why) const {
        if (sharing_.joined() && sharing_.budget().over(why)) return false;
        const std::uint64_t used = budget_.used(), most = own_limit();
        if (used <= most) return true;
        if (why) *why = {.used = used, .ceiling = most, .limit = most};
        return false;
    }

    // The same, without what other members of the accounts have given back to the driver and are charged with. Asks
    // NVML: no lock may be held.
    bool within_limit_of_living(LimitError* why) const { return within_limit(why) || within_given_back(); }

    // Around a call in which the driver may take or give back memory by itself. Calls of this kind are serialised per
    // GPU only while they are measured, never while the driver works.
    DriverFootprint::Step before_driver_step(bool makes_context = false);
    // True if memory that the driver gives back has to be measured around the call; else its figure shows it at any
    // time.
    bool measures_steps() const { return !footprint().exact(); }
    // The bytes to charge for a block of cuMemAlloc. An H200's driver gives memory in chunks of 2 MiB, and small blocks
    // share chunks. Where NVML lists the process, the next look finds what was rounded up; elsewhere nothing would, so
    // whole chunks are charged.
    std::uint64_t taken_for(std::uint64_t bytes) const {
        constexpr std::uint64_t kChunk = 2 << 20;
        if (bytes <= kChunk / 2 || !measures_steps()) [[likely]]
            return bytes;
        const std::uint64_t up = (bytes + kChunk - 1) / kChunk * kChunk;
        return up < bytes ? bytes : up;
    }
    /// The fewest bytes that a context of this kind takes which is to be this process's first on the GPU, as far as
    /// this user's processes have seen. 0: that isn't known, or there is one.
    std::uint64_t known_context(std::uint64_t kind);
    /// After a context of this kind was made: keeps its size for processes to come, where it was the first.
    void note_context(std::uint64_t kind);
    // Charges what the driver will take in the step at least, until it is measured. It may have what is set aside for
    // the driver, too. False if it doesn't fit: nothing is charged then, and the driver need not be asked.
    bool foresee(DriverFootprint::Step& step, std::uint64_t bytes, LimitError* why);
    // False if the total is over the limit now, of this part or of another one that is charged its share, so that the
    // caller can undo what it did.
    bool after_driver_step(DriverFootprint::Step& step, LimitError* why);
    // The same after the end of a context, which may have been the last.
    void after_context_end(DriverFootprint::Step& step);

    // After cuMemFree and the like: no context of this GPU is needed for any of these.
    Budget& budget() { return budget_; }
    MemoryPools& pools() { return pools_; }
    const MemoryPools& pools() const { return pools_; }
    PrimaryContext& primary() { return primary_; }

    // The driver's footprint has become smaller: it is read again before anybody sees a figure or is refused, on
    // whichever part of the GPU.
    void driver_gave_back() {
        for (VirtualGpu* part : physical_->parts()) part->stale_.store(true, std::memory_order_relaxed);
        tell_settled();
    }

    // Something has been given back that the charge doesn't show before the next look: if nothing is in flight now, the
    // others of the accounts are told so, and may compare the charge with the driver's figure (ledger/holdings.h).
    void tell_settled() {
        if (sharing_.joined()) tell_settled_now();
    }
    // An operation begins that reserves nothing, as it takes what is charged already.
    void tell_unsettled() {
        if (sharing_.joined()) tell_unsettled_now();
    }

    // Bytes that the driver will have back at a time of its own: they stay charged until they are seen to be gone.
    void release_later(std::uint64_t bytes);

    // Bytes that the program has given back and the driver may not have: another process still holds them, or they are
    // in allocations of a pool that is gone. They stay charged until the driver's figure says that they are free; where
    // there is none, to the end of the process.
    void release_shared(std::uint64_t bytes);

    /// Around a driver call by which exported memory of cuMemCreate may lose its last handle or mapping in this
    /// process; what does is released in between, with the figure that the first one returns. Others may keep such
    /// memory on the GPU without NVML's listing it with anybody: then it stays charged here (UnlistedMemory). These ask
    /// NVML: no lock may be held.
    std::uint64_t before_exported_release();
    void release_exported(std::uint64_t bytes, std::uint64_t before);
    void after_exported_release();

    // Some memory that has no record is part of the driver's from now on: allocations of a pool that is gone, or of
    // another process. Its free makes that part smaller.
    void watch_frees() {
        watch_frees_.store(true, std::memory_order_relaxed);
        some_watches_.store(true, std::memory_order_relaxed);
    }
    // True if any GPU is watched: for whoever would have to ask the driver which one it is.
    static bool some_watches_frees() { return some_watches_.load(std::memory_order_relaxed); }
    // True if any GPU is in accounts, whose other members may wait for what is freed.
    static bool some_shares() { return some_shares_.load(std::memory_order_relaxed); }
    bool watches_frees() const { return watch_frees_.load(std::memory_order_relaxed); }

    // Reads pools and the driver's footprint again.
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

    // Bytes that the driver takes by itself; for a partition, its share.
    std::uint64_t driver_footprint() const { return __atomic_load_n(&driver_bytes_, __ATOMIC_RELAXED); }
    std::uint64_t headroom() const;
    // Headroom of such a limit, in bytes.
    std::uint64_t headroom(LimitOf of) const;
    // Bytes kept free on the whole GPU.
    std::uint64_t headroom_of_all() const;
    // Over the driver's footprint.
    Mutex& mutex() { return physical_->mutex(); }

  private:
    bool enter(std::uint64_t bytes, LimitError* why, CacheOfUnseen cache = CacheOfUnseen::prepared) {
        return entered_.load(std::memory_order_acquire) || enter_now(bytes, why, cache);
    }
    bool enter_now(std::uint64_t bytes, LimitError* why, CacheOfUnseen cache);
    // Runs before every reservation.
    bool ready_for(std::uint64_t bytes, LimitError* why, CacheOfUnseen cache = CacheOfUnseen::prepared) {
        if (!enter(bytes, why, cache)) [[unlikely]]
            return false;
        look_before(bytes);
        return true;
    }
    DriverFootprint& footprint() const { return physical_->driver_footprint(); }
    DriverFootprint::State driver_state() const;
    bool all_within_limits(LimitError* why) const;
    bool all_within_given_back() const;
    bool fits_given_back(DriverFootprint::Step& step, std::uint64_t bytes);
    bool trim_for_driver(const LimitError& over);
    void less_driver_step(LimitError& over, std::uint64_t bytes) const;
    // By whose ledger something is known of this GPU.
    GpuSharing& accounts();
    // A part's own limit, and where the parts may be more than the GPU's slice together, that one's.
    bool charge(std::uint64_t bytes, LimitError* why = nullptr) {
        if (!budget_.reserve(bytes, why)) [[unlikely]] {
            if (why && !why->limit) why->limit = limit();
            return false;
        }
        return !physical_->limit_of_all() || fits_in_whole(bytes, why);
    }
    bool fits_in_whole(std::uint64_t bytes, LimitError* why);
    // Takes back what dead members of the accounts held.
    void take_back_dead() {
        sharing_.take_back_dead();
        physical_->sharing().take_back_dead();
    }
    // Where the accounts' file is gone and has another one in its place: what others hold, and what they ask for, is
    // there. A reservation finds that out by being refused, and nothing else does.
    void follow_file() {
        if (sharing_.joined() && sharing_.budget().retired()) [[unlikely]]
            follow_file_now();
    }
    void follow_file_now();
    bool charge_after_looking(std::uint64_t bytes, LimitError* why);
    bool reserve_what_shrank(std::uint64_t bytes, LimitError* why);
    // True once `fits` is, after other processes were asked for cached memory of the limit that they share.
    template <typename Fits>
    bool fits_after_siblings(std::uint64_t bytes, Fits fits) {
        return wait_for_siblings(
            bytes, [](void* asked) { return (*static_cast<Fits*>(asked))(); }, &fits);
    }
    bool wait_for_siblings(std::uint64_t bytes, bool (*fits)(void*), void* asked);
    bool reserve_of_siblings(std::uint64_t bytes, LimitError* why) {
        return fits_after_siblings(bytes, [&] { return charge(bytes, why); });
    }
    bool reserve_given_back(std::uint64_t bytes, LimitError* why);
    bool within_given_back() const;
    void tell_settled_now();
    void tell_settled_on_gpu();
    void tell_unsettled_now();
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
    // Bytes that this process may hold by itself within a limit that it shares: where the accounts are a group's
    // alone, none of them holds the process's own limit.
    std::uint64_t alone() const { return process_limit_.load(std::memory_order_relaxed); }
    [[gnu::noinline]] std::uint64_t room_in_accounts() const;  // apart from room(), which saves no register for it
    std::uint64_t own_limit() const { return sharing_.joined() ? alone() : slice_.limit; }
    std::uint64_t unseen() const;
    bool due();
    bool far_from_limit(std::uint64_t bytes) const;
    bool worth_looking(std::uint64_t bytes);
    void look();
    void note_use(std::uint64_t bytes) {
        if (bytes > most_used_.load(std::memory_order_relaxed)) most_used_.store(bytes, std::memory_order_relaxed);
    }
    // With the lock held.
    void publish();
    void publish_parts();
    void open_driver_footprint();
    std::uint64_t used_by_others();
    bool join_alone(const SharingPlan& plan, Refusal* refusal);
    // Totals of all partitions of the physical GPU.
    std::uint64_t managed() const;
    DriverFootprint::Budgets budgets();

    int ordinal_ = -1;
    GpuIdentity identity_;
    PhysicalGpu* physical_ = nullptr;
    char name_[96] = {};
    Slice slice_;
    std::atomic<std::uint64_t> process_limit_{Budget::kUnlimited};

    Budget budget_;
    GpuSharing sharing_;
    MemoryPools pools_;
    PrimaryContext primary_;
    std::atomic<std::uint64_t> managed_{0};
    std::atomic<std::uint32_t> wanted_seen_{0};
    std::atomic<bool> entered_{false};    // nothing is left to be done before a reservation
    std::atomic<bool> is_member_{false};  // all parts are members of their accounts, or there are none
    bool in_accounts_ = false;            // this one is, and its budget is charged to them; under mutex()
    std::atomic<bool> stale_{false};
    std::atomic<bool> watch_frees_{false};
    static constinit std::atomic<bool> some_watches_, some_shares_;
    std::atomic<bool> measured_{false};
    std::uint64_t driver_bytes_ = 0;            // its share of what the driver takes: for readers without the lock
    std::atomic<std::uint64_t> look_above_{0};  // bytes in use from which on the driver's footprint is read again
    std::atomic<std::uint64_t> look_after_{0};  // bytes granted after which it is
    std::atomic<std::uint64_t> most_used_{0};   // of what was charged when it was looked at
    std::atomic<std::uint64_t> unseen_{0};      // at the last look
    std::atomic<unsigned> vain_looks_{0};       // in a row, that found the driver's footprint as it was
    std::atomic<unsigned> vain_times_{0};       // in a row, that it was asked whether to look
    std::atomic<std::int64_t> looked_at_{0};    // milliseconds
    std::atomic<std::int64_t> asked_at_{0};     // the same, of whether to look
    std::atomic<bool> giving_back_{false};
    // The last wait for siblings was in vain: how they stood then, and until when it would be again, in milliseconds.
    std::atomic<std::uint64_t> siblings_{0};
    std::atomic<std::int64_t> no_wait_until_{0};
};

}  // namespace cuslice
