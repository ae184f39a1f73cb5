#include "shim/nvml/slice_seen.h"

#include <unistd.h>

#include <algorithm>

#include "shim/process/process.h"
#include "shim/process/watchers.h"
#include "virtual_gpu/gpu/memory_view.h"
#include "virtual_gpu/nvml/nvml_gpu.h"
#include "virtual_gpu/split/nvml.h"

namespace cuslice {

SliceSeen::SliceSeen(nvmlDevice_t device, std::uint64_t physical_total) {
    GpuIdentity identity;
    const VirtualNvmlDevice* virtual_device = virtual_nvml().find(device);
    if (virtual_device)
        identity = virtual_device->identity;
    else if (process().settings().entries().empty() || !NvmlGpu(device).identity(&identity))
        return;
    is_part_ = virtual_device && virtual_device->part.split;
    const SharingPlan& plan = gpu_state().sharing;
    gpu_ = process().find_gpu(identity.uuid);
    if (gpu_) {
        limited_ = gpu_->limited();
        if (limited_) memory_view(*gpu_, ~0ull);  // reads again what pools have given back: CUDA's figures do the same
        total_ = limit_to_come(*gpu_);
        used_ = gpu_->budget().used();
        if (limited_ && gpu_->siblings().sharing().watch(plan, identity.uuid, &watched_)) used_ = watched_.used;
        if (gpu_->slice().only_group()) limited_ = watched_.limit != ledger::kNoLimitBytes;
    } else {
        // CUDA's bytes, of which a share is the same before CUDA starts as afterwards.
        std::uint64_t used = 0;
        if (virtual_device)
            physical_total = virtual_device->total;
        else
            NvmlGpu(device).used_by_all(&used, &physical_total);
        const Slice slice = is_part_ ? process().slice_of(virtual_device->part, *virtual_device->gpu, physical_total)
                                     : process().slice_of(identity, physical_total);
        limited_ = slice.limited;
        total_ = slice.limit;
        GpuSharing* watcher = limited_ && plan.any() ? watcher_of(identity.uuid) : nullptr;
        if (watcher && watcher->watch(plan, identity.uuid, &watched_)) {
            used_ = watched_.used;
            total_ = std::min(watched_.limit, physical_total ? physical_total : watched_.limit);
            // A rule's account doesn't have the limit of a process for itself.
            if (plan.job_count == 0 && !plan.rule.empty()) total_ = std::min(total_, slice.limit);
        }
        if (slice.only_group()) limited_ = watched_.limit != ledger::kNoLimitBytes;
    }
    // Cached memory is available, and counts as free.
    if (gpu_ && gpu_->caches()) used_ -= std::min(used_, process().caches().unused(*gpu_));
    used_ = std::min(used_, total_);
}

std::uint64_t SliceSeen::free(std::uint64_t physical_free) const {
    return gpu_ ? memory_view(*gpu_, physical_free).free : std::min(total_ - used_, physical_free);
}

bool SliceSeen::has(unsigned pid) const {
    // On the physical GPU this process may be there with another part.
    if (pid == static_cast<unsigned>(getpid())) return !is_part_ || own() != 0;
    return std::find(watched_.pids, watched_.pids + watched_.count, static_cast<std::int32_t>(pid)) !=
           watched_.pids + watched_.count;
}

// NVML's figure is what a process holds on the physical GPU, of all its parts.
std::uint64_t SliceSeen::held_by(unsigned pid, std::uint64_t physical) const {
    if (!is_part_ || physical == nvml::kValueNotAvailable) return physical;
    return pid == static_cast<unsigned>(getpid()) ? own() : std::min(physical, used_);
}

}  // namespace cuslice
