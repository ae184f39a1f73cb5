// SPDX-License-Identifier: Apache-2.0
// NVML's lists of processes: those that are part of the slice, and nobody else's.
#include <algorithm>

#include "shim/nvml/load.h"
#include "shim/nvml/slice_seen.h"
#include "virtual_gpu/driver/scratch.h"

namespace cuslice {

namespace {

// Room for more processes than a GPU can serve.
constexpr unsigned kMax = 512;

// The whole list is asked for, whatever the caller has room for: only then can be told how much of it is theirs.
template <typename Info, typename Real>
nvmlReturn_t listed(Real real, nvmlDevice_t device, unsigned* count, Info* infos) {
    const SliceSeen seen(device, 0);
    if (!seen.limited() || !count)
        return real(device, count, infos);
    struct List {
        Info infos[kMax];
    };
    const Scratch<List> scratch;
    if (!scratch)
        return NVML_ERROR_MEMORY;
    Info* const all = scratch->infos;
    unsigned there = kMax;
    const nvmlReturn_t result = real(device, &there, all);
    if (result != NVML_SUCCESS)
        return result;
    Info* const end = std::remove_if(all, all + there, [&](const Info& info) { return !seen.has(info.pid); });
    for (Info* info = all; info != end; info++)
        info->usedGpuMemory = seen.held_by(info->pid, info->usedGpuMemory);
    const auto ours = static_cast<unsigned>(end - all);
    const bool room = ours <= *count && (infos || ours == 0);
    *count = ours;
    if (!room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    std::copy(all, end, infos);
    return NVML_SUCCESS;
}

}  // namespace

}  // namespace cuslice

using namespace cuslice;

CUSLICE_NVML_HOOK_FORM(nvmlDeviceGetComputeRunningProcesses, listed, device, count, infos)
CUSLICE_NVML_HOOK_FORM(nvmlDeviceGetComputeRunningProcesses_v2, listed, device, count, infos)
CUSLICE_NVML_HOOK_FORM(nvmlDeviceGetComputeRunningProcesses_v3, listed, device, count, infos)
CUSLICE_NVML_HOOK_FORM(nvmlDeviceGetGraphicsRunningProcesses, listed, device, count, infos)
CUSLICE_NVML_HOOK_FORM(nvmlDeviceGetGraphicsRunningProcesses_v2, listed, device, count, infos)
CUSLICE_NVML_HOOK_FORM(nvmlDeviceGetGraphicsRunningProcesses_v3, listed, device, count, infos)
CUSLICE_NVML_HOOK_FORM(nvmlDeviceGetMPSComputeRunningProcesses, listed, device, count, infos)
CUSLICE_NVML_HOOK_FORM(nvmlDeviceGetMPSComputeRunningProcesses_v2, listed, device, count, infos)
CUSLICE_NVML_HOOK_FORM(nvmlDeviceGetMPSComputeRunningProcesses_v3, listed, device, count, infos)
