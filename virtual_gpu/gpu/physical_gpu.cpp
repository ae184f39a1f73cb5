#include "virtual_gpu/gpu/physical_gpu.h"

#include <algorithm>

#include "virtual_gpu/nvml/nvml_gpu.h"

namespace cuslice {

void PhysicalGpu::open(const GpuIdentity& identity, std::uint64_t total) {
    identity_ = identity;
    total_ = total;
}

void PhysicalGpu::split(const Slice& slice, std::uint64_t limits_of_parts, bool plus_context) {
    split_ = true;
    slice_ = slice;
    slice_.limit = std::min(slice.limit, total_);
    const bool may_be_more = slice.limited && plus_context && !slice.plus_context;
    limit_of_all_ = may_be_more || limits_of_parts > slice_.limit ? slice_.limit : 0;
}

void PhysicalGpu::add(VirtualGpu& part, Budget& budget, std::uint64_t limit) {
    using Share = DriverFootprint::Share;
    parts_[count_] = &part;
    limits_[count_] = limit;
    shares_[count_++].budget = &budget;
    std::uint64_t all = 0, so_far = 0;
    for (std::size_t i = 0; i < count_; i++) all += limits_[i] / Budget::kUnit;
    for (std::size_t i = 0; i < count_; i++) {
        so_far += limits_[i] / Budget::kUnit;
        shares_[i].end = i + 1 == count_ || !all ? Share::kWhole : so_far * Share::kWhole / all;
    }
}

std::uint64_t PhysicalGpu::share_of(const VirtualGpu& part, std::uint64_t bytes) const {
    std::uint64_t begin = 0;
    for (std::size_t i = 0; i < count_; i++) {
        const std::uint64_t end = shares_[i].up_to(bytes);
        if (parts_[i] == &part) return end - begin;
        begin = end;
    }
    return 0;
}

std::uint64_t PhysicalGpu::charged() const {
    std::uint64_t bytes = 0;
    for (const DriverFootprint::Share& share : shares()) bytes += share.budget->used();
    return bytes;
}

std::uint64_t PhysicalGpu::used_by_all() const {
    NvmlGpu nvml;
    std::uint64_t bytes = 0;
    return nvml.open(identity_.uuid) && nvml.used_by_all(&bytes) == Reading::ok ? bytes : 0;
}

bool PhysicalGpu::join(const SharingPlan& plan, Refusal* refusal) {
    const auto in_use = [](void* self) { return static_cast<PhysicalGpu*>(self)->used_by_all(); };
    const GpuSharing::Slice shared{
        identity_.uuid,        total_, slice_.job_limit, slice_.group_limit, slice_.rule_limit, slice_.outer_limits,
        slice_.ceiling_for_all};
    return sharing_.join(plan, shared, nullptr, in_use, this, refusal);
}

}  // namespace cuslice
