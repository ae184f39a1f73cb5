// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/physical_gpu.h"

#include <algorithm>

#include "virtual_gpu/nvml/nvml_gpu.h"

namespace cuslice {

namespace {

// So many of the process's contexts are counted; a program that has more has its own troubles.
constexpr size_t kMaxContexts = 256;

}  // namespace

void PhysicalGpu::open(const GpuIdentity& identity, uint64_t total) {
    identity_ = identity;
    total_ = total;
}

void PhysicalGpu::split(const Slice& slice, uint64_t limits_of_parts, bool plus_context) {
    split_ = true;
    slice_ = slice;
    slice_.limit = std::min(slice.limit, total_);
    const bool may_be_more = slice.limited && plus_context && !slice.plus_context;
    limit_of_all_ = may_be_more || limits_of_parts > slice_.limit ? slice_.limit : 0;
}

void PhysicalGpu::add(const Part& part) {
    using Share = DriverFootprint::Share;
    parts_[count_] = part.gpu;
    details_[count_] = part;
    shares_[count_++].budget = part.budget;
    uint64_t all = 0, so_far = 0;
    for (size_t i = 0; i < count_; i++)
        all += details_[i].slice->limit / Budget::kUnit;
    for (size_t i = 0; i < count_; i++) {
        so_far += details_[i].slice->limit / Budget::kUnit;
        shares_[i].end = i + 1 == count_ || !all ? Share::kWhole : so_far * Share::kWhole / all;
    }
}

uint64_t PhysicalGpu::share_of(const VirtualGpu& part, uint64_t bytes) const {
    uint64_t begin = 0;
    for (size_t i = 0; i < count_; i++) {
        const uint64_t end = shares_[i].up_to(bytes);
        if (parts_[i] == &part)
            return end - begin;
        begin = end;
    }
    return 0;
}

uint64_t PhysicalGpu::charged() const {
    uint64_t bytes = 0;
    for (const DriverFootprint::Share& share : shares())
        bytes += share.budget->used();
    return bytes;
}

uint64_t PhysicalGpu::used_by_all() const {
    NvmlGpu nvml;
    uint64_t bytes = 0;
    return nvml.open(identity_.uuid) && nvml.used_by_all(&bytes) == Reading::ok ? bytes : 0;
}

DriverFootprint::State PhysicalGpu::state(Contexts& contexts) const {
    DriverFootprint::State state{managed()};
    state.steps = driver_footprint_.step_count();
    CUcontext all[kMaxContexts];
    CUdevice devices[kMaxContexts];
    const size_t there = std::min(contexts.list(all, kMaxContexts, devices), kMaxContexts);
    for (size_t part = 0; part < count_; part++)
        for (size_t i = 0; i < there; i++)
            state.contexts += devices[i] == details_[part].device;
    // All partitions of a GPU share one real context.
    if (is_split())
        state.contexts = std::min(state.contexts, 1u);
    return state;
}

DriverFootprint::Budgets PhysicalGpu::budgets() {
    DriverFootprint::Budgets all{shares()};
    all.reread = [](void* self) {
        const PhysicalGpu& gpu = *static_cast<PhysicalGpu*>(self);
        for (size_t i = 0; i < gpu.count_; i++)
            gpu.details_[i].pools->refresh(*gpu.details_[i].budget, false);
    };
    all.self = this;
    return all;
}

// The measured footprint is that of all parts together.
void PhysicalGpu::publish_footprint() {
    const uint64_t bytes = driver_footprint_.measured();
    uint64_t begin = 0;
    for (size_t i = 0; i < count_; i++) {
        const uint64_t end = shares_[i].up_to(bytes);
        details_[i].publish(*details_[i].gpu, end - begin);
        begin = end;
    }
    sharing_.budget().set_margin(headroom());
}

bool PhysicalGpu::join(const SharingPlan& plan, Refusal* refusal) {
    const auto in_use = [](void* self) { return static_cast<PhysicalGpu*>(self)->used_by_all(); };
    const GpuSharing::Slice shared{
        identity_.uuid,        total_, slice_.job_limit, slice_.group_limit, slice_.rule_limit, slice_.outer_limits,
        slice_.ceiling_for_all};
    return sharing_.join(plan, shared, nullptr, in_use, this, refusal);
}

}  // namespace cuslice
