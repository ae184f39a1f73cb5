// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "policy/budget/budget.h"
#include "virtual_gpu/gpu/given_back.h"
#include "virtual_gpu/gpu/lowered_limit.h"
#include "virtual_gpu/gpu/physical_gpu.h"
#include "virtual_gpu/gpu/sharing.h"
#include "virtual_gpu/gpu/slice.h"

namespace cuslice {

/// The other processes with whom a GPU's slice is shared: becomes a member of the accounts, requests cached memory of
/// their other members, and answers what they request. The accounts of a partition lie within those of the whole GPU.
/// Sizes are in bytes. Thread-safe once open.
class Siblings {
  public:
    /// Before any other thread knows of the GPU. What is handed in has to stay. `budget`: what this process has of it;
    /// `lowered`: how much of it the program wants.
    /// `start_nvml`: loads and initialises NVML; false if there is none.
    void open(const Slice& slice, PhysicalGpu& physical, Budget& budget, const LoweredLimit& lowered,
              bool (*start_nvml)());

    /// True if the slice is shared: it may be with nobody who is there.
    bool joined() const { return sharing_.joined(); }
    GpuSharing& sharing() { return sharing_; }
    const GpuSharing& sharing() const { return sharing_; }
    /// How this process found its group when it joined it; null: it has joined none.
    const ledger::GroupTerms* found_group() const {
        return (physical_->is_split() ? physical_->sharing() : sharing_).budget().found_group();
    }
    /// By whose ledger something is known of this GPU.
    GpuSharing& known_by() { return joined() ? sharing_ : physical_->sharing(); }

    /// True once all partitions of the GPU are members of their accounts, or there are none.
    bool is_member() const { return is_member_.load(std::memory_order_acquire); }
    void become_member() { is_member_.store(true, std::memory_order_release); }
    /// Joins the accounts of this GPU, or partition, in the ledger that has its UUID. `caches`: this process keeps
    /// freed memory of it. False if others stand in the way, which `refusal` names. Asks NVML: no lock may be held.
    bool join(const SharingPlan& plan, const char* uuid, bool caches, Refusal* refusal);
    /// After join(), with PhysicalGpu::mutex() held: what is charged to the budget is charged to the accounts from now
    /// on. False if it was already.
    bool share_budget(const SharingPlan& plan);
    /// In a forked child: all of it is the parent's.
    void forget();
    /// True if any GPU is in accounts, whose other members may wait for what is freed.
    static bool any_joined() { return any_joined_.load(std::memory_order_relaxed); }

    /// Bytes that this process may hold by itself within a limit that it shares: where the accounts are a group's
    /// alone, none of them holds the process's own limit; and the program may have lowered it.
    uint64_t process_limit() const {
        return std::min(process_limit_.load(std::memory_order_relaxed), lowered_->bytes());
    }
    /// The same, or of `unshared` where nothing is shared.
    uint64_t own_limit(uint64_t unshared) const {
        return joined() ? process_limit() : std::min(unshared, lowered_->bytes());
    }
    /// Bytes that can be reserved in the accounts while `used` is charged here; where a group has no limit, the GPU's
    /// end is the only one.
    uint64_t room(uint64_t used) const;

    /// True if another process has requested cached memory since the last call.
    bool trim_requested() { return joined() && trim_requested_now(); }
    /// Tells the others how much is cached here that they could have. Where joined() is true.
    void publish_reclaimable(uint64_t bytes) { sharing_.budget().caches(bytes); }
    /// Requests `bytes` of the others and waits until `fits` is true; returns that.
    template <typename Fits>
    bool wait_until(uint64_t bytes, Fits fits) {
        return joined() && wait(
                               bytes, [](void* asked) { return (*static_cast<Fits*>(asked))(); }, &fits);
    }

    /// Takes back what dead members of the accounts held.
    void take_back_dead() {
        sharing_.take_back_dead();
        physical_->sharing().take_back_dead();
    }
    /// The same before a figure is shown, ten times a second at most.
    void take_back_dead_now_and_then() {
        sharing_.take_back_dead_now_and_then();
        physical_->sharing().take_back_dead_now_and_then();
    }
    /// Where the accounts' file is gone and has another one in its place: what others hold, and what they request, is
    /// there. A reservation finds that out by being refused, and nothing else does.
    void follow_file();

    /// Memory that members have given back to the driver and are charged with.
    GivenBack given_back();

  private:
    bool trim_requested_now();
    bool wait(uint64_t bytes, bool (*fits)(void*), void* asked);

    GpuSharing sharing_;
    std::atomic<uint64_t> process_limit_{Budget::kUnlimited};
    const LoweredLimit* lowered_ = nullptr;
    const Slice* slice_ = nullptr;
    PhysicalGpu* physical_ = nullptr;
    Budget* budget_ = nullptr;
    bool (*start_nvml_)() = nullptr;
    std::atomic<uint32_t> requests_seen_{0};
    std::atomic<bool> is_member_{false};
    bool shares_budget_ = false;  // under PhysicalGpu::mutex()
    static constinit std::atomic<bool> any_joined_;
    // The last wait was in vain: how the others stood then, and until when it would be again, in milliseconds.
    std::atomic<uint64_t> waited_for_{0};
    std::atomic<int64_t> no_wait_until_{0};
};

}  // namespace cuslice
