// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>
#include <span>

#include "config/gpu_selector.h"
#include "policy/base/mutex.h"
#include "policy/budget/budget.h"
#include "virtual_gpu/driver/cuda_api.h"
#include "virtual_gpu/gpu/contexts.h"
#include "virtual_gpu/gpu/driver_footprint.h"
#include "virtual_gpu/gpu/memory_pools.h"
#include "virtual_gpu/gpu/sharing.h"
#include "virtual_gpu/gpu/slice.h"

namespace cuslice {

class VirtualGpu;

// A GPU as the driver has it, and what its parts share: the figure that the driver and NVML have of it, and the GPU's
// own slice with its accounts, which all parts are in. A GPU that isn't split has one part. Open while the GPUs are
// opened, by one thread; everything else is thread-safe.
class PhysicalGpu {
  public:
    static constexpr size_t kMaxParts = DriverFootprint::kMaxShares;

    // One of its parts, and what is its own.
    struct Part {
        VirtualGpu* gpu;
        CUdevice device;  // as the program counts
        const Slice* slice;
        Budget* budget;
        MemoryPools* pools;
        // Makes its share of what the driver takes, in bytes, take effect. With mutex() held.
        void (*publish)(VirtualGpu& gpu, uint64_t bytes);
    };

    // `total`: bytes.
    void open(const GpuIdentity& identity, uint64_t total);
    // And then, of one that is split: its own slice, and the sum of its parts' limits, in bytes. `plus_context`: the
    // context comes on top of these.
    void split(const Slice& slice, uint64_t limits_of_parts, bool plus_context);
    // It is charged what the driver takes on the GPU in proportion to its limit. What it points to has to stay.
    void add(const Part& part);

    // The identity by which NVML knows the GPU.
    const GpuIdentity& identity() const { return identity_; }
    uint64_t total() const { return total_; }
    bool is_split() const { return split_; }
    std::span<VirtualGpu* const> parts() const { return {parts_, count_}; }
    // The driver's footprint on the GPU, and the partitions' shares of it, in their order. Under mutex().
    DriverFootprint& driver_footprint() { return driver_footprint_; }
    const DriverFootprint& driver_footprint() const { return driver_footprint_; }
    std::span<const DriverFootprint::Share> shares() const { return {shares_, count_}; }
    // The share of a part in `bytes` that the driver takes, in bytes.
    uint64_t share_of(const VirtualGpu& part, uint64_t bytes) const;

    // The GPU's own slice: groups and rules are joined for all of its parts together.
    const Slice& whole_slice() const { return split_ ? slice_ : *details_[0].slice; }
    // Bytes kept free on the whole GPU.
    uint64_t headroom() const { return whole_slice().headroom_for(driver_footprint_.bytes()); }
    // Bytes that the parts may hold together where their own limits are more than that; 0 where they are not.
    uint64_t limit_of_all() const { return limit_of_all_; }

    // Bytes that are charged to its parts.
    uint64_t charged() const;
    // The same, and the context where it comes on top of their limits.
    uint64_t held() const { return charged() + driver_footprint_.on_top(); }
    // Bytes that count towards limit_of_all().
    uint64_t counted_of_all() const { return slice_.plus_context ? charged() : held(); }
    // Bytes that everybody holds on it; 0 where that isn't known.
    uint64_t used_by_all() const;

    // Managed memory came (or went, negative): it is charged in full, wherever the driver keeps it.
    void managed_changed(int64_t bytes) { managed_.fetch_add(static_cast<uint64_t>(bytes), std::memory_order_relaxed); }
    // True if a figure of NVML's that has become smaller means that so much was given back. It doesn't with managed
    // memory, nor where others keep what was exported, nor while a context is made, which is charged before it is
    // there.
    bool figure_has_all() const {
        return !managed() && !driver_footprint_.unlisted().any() && !driver_footprint_.foresees();
    }

    // True if memory that the driver gives back has to be measured around the call; else its figure shows it at any
    // time.
    bool measures_steps() const { return !driver_footprint_.exact(); }
    // The facts that a reading of the driver's footprint depends on, by the process's contexts, and the budgets that it
    // is charged to.
    DriverFootprint::State state(Contexts& contexts) const;
    DriverFootprint::Budgets budgets();
    // Makes what was measured take effect: each part's share of it, and what is kept free on the whole GPU. With
    // mutex() held.
    void publish_footprint();

    // Becomes a member of the GPU's accounts, in which everybody sees what the parts hold: once for all of them. False
    // if others stand in the way, which `refusal` names.
    bool join(const SharingPlan& plan, Refusal* refusal);
    GpuSharing& sharing() { return sharing_; }

    // Over the driver's footprint, and what follows from it for every part.
    Mutex& mutex() { return mutex_; }

  private:
    uint64_t managed() const { return managed_.load(std::memory_order_relaxed); }

    GpuIdentity identity_;
    uint64_t total_ = 0;
    bool split_ = false;
    Slice slice_;
    uint64_t limit_of_all_ = 0;
    GpuSharing sharing_;
    Mutex mutex_{LockRank::driver_footprint};
    VirtualGpu* parts_[kMaxParts] = {};
    DriverFootprint driver_footprint_;
    DriverFootprint::Share shares_[kMaxParts];
    Part details_[kMaxParts] = {};
    size_t count_ = 0;
    std::atomic<uint64_t> managed_{0};
};

}  // namespace cuslice
