#pragma once
#include <cstdint>
#include <span>

#include "config/gpu_selector.h"
#include "policy/base/mutex.h"
#include "policy/budget/budget.h"
#include "virtual_gpu/gpu/driver_footprint.h"
#include "virtual_gpu/gpu/sharing.h"
#include "virtual_gpu/gpu/slice.h"

namespace cuslice {

class VirtualGpu;

// A GPU as the driver has it, and what its parts share: the figure that the driver and NVML have of it, and the GPU's
// own slice with its accounts, which all parts are in. A GPU that isn't split has one part. Open while the GPUs are
// opened, by one thread; everything else is thread-safe.
class PhysicalGpu {
  public:
    static constexpr std::size_t kMaxParts = DriverFootprint::kMaxShares;

    // `total`: bytes.
    void open(const GpuIdentity& identity, std::uint64_t total);
    // And then, of one that is split: its own slice, and the sum of its parts' limits, in bytes. `plus_context`: the
    // context comes on top of these.
    void split(const Slice& slice, std::uint64_t limits_of_parts, bool plus_context);
    // `limit`: bytes of the part, in proportion to which it is charged what the driver takes on the GPU.
    void add(VirtualGpu& part, Budget& budget, std::uint64_t limit);

    // The identity by which NVML knows the GPU.
    const GpuIdentity& identity() const { return identity_; }
    std::uint64_t total() const { return total_; }
    bool is_split() const { return split_; }
    std::span<VirtualGpu* const> parts() const { return {parts_, count_}; }
    // The driver's footprint on the GPU, and the partitions' shares of it, in their order. Under mutex().
    DriverFootprint& driver_footprint() { return driver_footprint_; }
    const DriverFootprint& driver_footprint() const { return driver_footprint_; }
    std::span<const DriverFootprint::Share> shares() const { return {shares_, count_}; }
    // The share of a part in `bytes` that the driver takes, in bytes.
    std::uint64_t share_of(const VirtualGpu& part, std::uint64_t bytes) const;

    // The GPU's own slice, if it is split.
    const Slice& slice() const { return slice_; }
    // Bytes that the parts may hold together where their own limits are more than that; 0 where they are not.
    std::uint64_t limit_of_all() const { return limit_of_all_; }

    // Bytes that are charged to its parts.
    std::uint64_t charged() const;
    // The same, and the context where it comes on top of their limits.
    std::uint64_t held() const { return charged() + driver_footprint_.on_top(); }
    // Bytes that count towards limit_of_all().
    std::uint64_t counted_of_all() const { return slice_.plus_context ? charged() : held(); }
    // Bytes that everybody holds on it; 0 where that isn't known.
    std::uint64_t used_by_all() const;

    // Becomes a member of the GPU's accounts, in which everybody sees what the parts hold: once for all of them. False
    // if others stand in the way, which `refusal` names.
    bool join(const SharingPlan& plan, Refusal* refusal);
    GpuSharing& sharing() { return sharing_; }

    // Over the driver's footprint, and what follows from it for every part.
    Mutex& mutex() { return mutex_; }

  private:
    GpuIdentity identity_;
    std::uint64_t total_ = 0;
    bool split_ = false;
    Slice slice_;
    std::uint64_t limit_of_all_ = 0;
    GpuSharing sharing_;
    Mutex mutex_{LockRank::driver_footprint};
    VirtualGpu* parts_[kMaxParts] = {};
    DriverFootprint driver_footprint_;
    DriverFootprint::Share shares_[kMaxParts];
    std::uint64_t limits_[kMaxParts] = {};  // bytes
    std::size_t count_ = 0;
};

}  // namespace cuslice
