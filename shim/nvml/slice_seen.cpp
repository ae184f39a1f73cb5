// SPDX-License-Identifier: Apache-2.0
#include "shim/nvml/slice_seen.h"

#include <unistd.h>

#include <algorithm>

#include "shim/process/process.h"
#include "shim/process/watchers.h"
#include "virtual_gpu/gpu/memory_view.h"
#include "virtual_gpu/nvml/nvml_gpu.h"
#include "virtual_gpu/split/nvml.h"

namespace cuslice {

namespace {

// False if it isn't known, or nothing is limited.
bool identify(nvmlDevice_t device, const VirtualNvmlDevice* virtual_device, GpuIdentity* identity) {
    if (virtual_device) {
        *identity = virtual_device->identity;
        return true;
    }
    return !process().settings().entries().empty() && NvmlGpu(device).identity(identity);
}

// CUDA's bytes, of which a share is the same before CUDA starts as afterwards. Without them NVML's, `otherwise`.
uint64_t total_of(nvmlDevice_t device, const VirtualNvmlDevice* virtual_device, uint64_t otherwise) {
    if (virtual_device)
        return virtual_device->total;
    uint64_t used = 0, total = otherwise;
    NvmlGpu(device).used_by_all(&used, &total);
    return total;
}

}  // namespace

SliceSeen::SliceSeen(nvmlDevice_t device, uint64_t physical_total) {
    GpuIdentity identity;
    const VirtualNvmlDevice* const virtual_device = virtual_nvml().find(device);
    if (!identify(device, virtual_device, &identity))
        return;
    is_part_ = virtual_device && virtual_device->part.split;
    gpu_ = process().find_gpu(identity.uuid);
    if (gpu_) {
        see_own(identity.uuid);
    } else {
        const uint64_t total = total_of(device, virtual_device, physical_total);
        const Slice slice = is_part_ ? process().slice_of(virtual_device->part, *virtual_device->gpu, total)
                                     : process().slice_of(identity, total);
        see_from_outside(identity.uuid, slice, total);
    }
    // Cached memory is available, and counts as free.
    if (gpu_ && gpu_->caches())
        used_ -= std::min(used_, process().caches().unused(*gpu_));
    used_ = std::min(used_, total_);
}

// The GPU is one that this process has opened through CUDA.
void SliceSeen::see_own(const char* uuid) {
    limited_ = gpu_->limited();
    if (limited_)
        memory_view(*gpu_, ~0ull);  // reads again what pools have given back: CUDA's figures do the same
    total_ = limit_to_come(*gpu_);
    used_ = gpu_->budget().used();
    const bool shared = limited_ && gpu_->siblings().sharing().watch(gpu_state().sharing, uuid, &watched_);
    if (shared)
        used_ = watched_.used;
    take_group_limit(gpu_->slice());
}

// The process only watches the GPU.
void SliceSeen::see_from_outside(const char* uuid, const Slice& slice, uint64_t physical_total) {
    const SharingPlan& plan = gpu_state().sharing;
    limited_ = slice.limited;
    total_ = slice.limit;
    const bool may_share = limited_ && plan.any();
    GpuSharing* const watcher = may_share ? watcher_of(uuid) : nullptr;
    if (watcher && watcher->watch(plan, uuid, &watched_)) {
        used_ = watched_.used;
        total_ = std::min(watched_.limit, physical_total ? physical_total : watched_.limit);
        // A rule's account doesn't have the limit of a process for itself.
        const bool rule_alone = plan.job_count == 0 && !plan.rule.empty();
        if (rule_alone)
            total_ = std::min(total_, slice.limit);
    }
    take_group_limit(slice);
}

// Where nothing but a group limits the slice, there is a limit once the group has one.
void SliceSeen::take_group_limit(const Slice& slice) {
    if (slice.only_group())
        limited_ = watched_.limit != ledger::kNoLimitBytes;
}

uint64_t SliceSeen::free(uint64_t physical_free) const {
    return gpu_ ? memory_view(*gpu_, physical_free).free : std::min(total_ - used_, physical_free);
}

bool SliceSeen::has(unsigned pid) const {
    // On the physical GPU this process may be there with another part.
    if (pid == static_cast<unsigned>(getpid()))
        return !is_part_ || own() != 0;
    const auto* const end = watched_.pids + watched_.count;
    return std::find(watched_.pids, end, static_cast<int32_t>(pid)) != end;
}

// NVML's figure is what a process holds on the physical GPU, of all its parts.
uint64_t SliceSeen::held_by(unsigned pid, uint64_t physical) const {
    if (!is_part_ || physical == nvml::kValueNotAvailable)
        return physical;
    return pid == static_cast<unsigned>(getpid()) ? own() : std::min(physical, used_);
}

}  // namespace cuslice
