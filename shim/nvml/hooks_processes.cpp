// NVML's lists of processes: those that are part of the slice, and nobody else's.
#include <algorithm>

#include "shim/nvml/load.h"
#include "shim/nvml/slice_seen.h"
#include "virtual_gpu/driver/nvml_table.h"
#include "virtual_gpu/driver/scratch.h"

CUSLICE_NVML_HOOK(nvmlDeviceGetComputeRunningProcesses)
CUSLICE_NVML_HOOK(nvmlDeviceGetComputeRunningProcesses_v2)
CUSLICE_NVML_HOOK(nvmlDeviceGetComputeRunningProcesses_v3)
CUSLICE_NVML_HOOK(nvmlDeviceGetGraphicsRunningProcesses)
CUSLICE_NVML_HOOK(nvmlDeviceGetGraphicsRunningProcesses_v2)
CUSLICE_NVML_HOOK(nvmlDeviceGetGraphicsRunningProcesses_v3)
CUSLICE_NVML_HOOK(nvmlDeviceGetMPSComputeRunningProcesses)
CUSLICE_NVML_HOOK(nvmlDeviceGetMPSComputeRunningProcesses_v2)
CUSLICE_NVML_HOOK(nvmlDeviceGetMPSComputeRunningProcesses_v3)

namespace cuslice {

namespace {

// Room for more processes than a GPU can serve.
constexpr unsigned kMost = 512;

// The whole list is asked for, whatever the caller has room for: only then can be told how much of it is theirs.
template <typename Info, typename Real>
nvml::Return listed(Real real, nvml::Device device, unsigned* count, Info* infos) {
    if (const nvml::Return loaded = nvml_ready(); loaded != nvml::SUCCESS) return loaded;
    const SliceSeen seen(device, 0);
    if (!seen.limited() || !count) return real(device, count, infos);
    struct List {
        Info infos[kMost];
    };
    const Scratch<List> scratch;
    if (!scratch) return nvml::ERROR_MEMORY;
    Info* const all = scratch->infos;
    unsigned there = kMost;
    const nvml::Return result = real(device, &there, all);
    if (result != nvml::SUCCESS) return result;
    Info* const end = std::remove_if(all, all + there, [&](const Info& info) { return !seen.has(info.pid); });
    for (Info* info = all; info != end; info++) info->usedGpuMemory = seen.held_by(info->pid, info->usedGpuMemory);
    const auto ours = static_cast<unsigned>(end - all);
    const bool room = ours <= *count && (infos || ours == 0);
    *count = ours;
    if (!room) return nvml::ERROR_INSUFFICIENT_SIZE;
    std::copy(all, end, infos);
    return nvml::SUCCESS;
}

}  // namespace

}  // namespace cuslice

using namespace cuslice;

nvml::Return CUSLICE_NVML_HOOKED(nvmlDeviceGetComputeRunningProcesses)(nvml::Device device, unsigned* count,
                                                                       nvml::ProcessInfoV1* infos) {
    return listed(CUSLICE_REAL_NVML(nvmlDeviceGetComputeRunningProcesses), device, count, infos);
}

nvml::Return CUSLICE_NVML_HOOKED(nvmlDeviceGetComputeRunningProcesses_v2)(nvml::Device device, unsigned* count,
                                                                          nvml::ProcessInfo* infos) {
    return listed(CUSLICE_REAL_NVML(nvmlDeviceGetComputeRunningProcesses_v2), device, count, infos);
}

nvml::Return CUSLICE_NVML_HOOKED(nvmlDeviceGetComputeRunningProcesses_v3)(nvml::Device device, unsigned* count,
                                                                          nvml::ProcessInfo* infos) {
    return listed(CUSLICE_REAL_NVML(nvmlDeviceGetComputeRunningProcesses_v3), device, count, infos);
}

nvml::Return CUSLICE_NVML_HOOKED(nvmlDeviceGetGraphicsRunningProcesses)(nvml::Device device, unsigned* count,
                                                                        nvml::ProcessInfoV1* infos) {
    return listed(CUSLICE_REAL_NVML(nvmlDeviceGetGraphicsRunningProcesses), device, count, infos);
}

nvml::Return CUSLICE_NVML_HOOKED(nvmlDeviceGetGraphicsRunningProcesses_v2)(nvml::Device device, unsigned* count,
                                                                           nvml::ProcessInfo* infos) {
    return listed(CUSLICE_REAL_NVML(nvmlDeviceGetGraphicsRunningProcesses_v2), device, count, infos);
}

nvml::Return CUSLICE_NVML_HOOKED(nvmlDeviceGetGraphicsRunningProcesses_v3)(nvml::Device device, unsigned* count,
                                                                           nvml::ProcessInfo* infos) {
    return listed(CUSLICE_REAL_NVML(nvmlDeviceGetGraphicsRunningProcesses_v3), device, count, infos);
}

nvml::Return CUSLICE_NVML_HOOKED(nvmlDeviceGetMPSComputeRunningProcesses)(nvml::Device device, unsigned* count,
                                                                          nvml::ProcessInfoV1* infos) {
    return listed(CUSLICE_REAL_NVML(nvmlDeviceGetMPSComputeRunningProcesses), device, count, infos);
}

nvml::Return CUSLICE_NVML_HOOKED(nvmlDeviceGetMPSComputeRunningProcesses_v2)(nvml::Device device, unsigned* count,
                                                                             nvml::ProcessInfo* infos) {
    return listed(CUSLICE_REAL_NVML(nvmlDeviceGetMPSComputeRunningProcesses_v2), device, count, infos);
}

nvml::Return CUSLICE_NVML_HOOKED(nvmlDeviceGetMPSComputeRunningProcesses_v3)(nvml::Device device, unsigned* count,
                                                                             nvml::ProcessInfo* infos) {
    return listed(CUSLICE_REAL_NVML(nvmlDeviceGetMPSComputeRunningProcesses_v3), device, count, infos);
}
