// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/selection/program_gpus.h"

#include <cstring>

#include "virtual_gpu/driver/scratch.h"
#include "virtual_gpu/nvml/nvml_gpu.h"
#include "virtual_gpu/selection/visible_devices.h"

namespace cuslice {

int ProgramGpus::find(const char* uuid) const {
    for (size_t i = 0; i < count; i++)
        if (std::strcmp(identities[i].uuid, uuid) == 0)
            return static_cast<int>(i);
    return -1;
}

// A MIG device can be named, but is not in NVML's list of the host.
void ProgramGpus::add(std::string_view uuid, std::span<const GpuIdentity> host) {
    GpuIdentity gpu;
    if (count == kMax || uuid.size() >= sizeof(gpu.uuid))
        return;
    std::memcpy(gpu.uuid, uuid.data(), uuid.size());
    NvmlGpu nvml;
    if (find(gpu.uuid) >= 0 || !nvml.open(gpu.uuid))
        return;
    for (const GpuIdentity& known : host)
        if (std::strcmp(known.uuid, gpu.uuid) == 0)
            gpu = known;
    uint64_t used = 0;
    totals[count] = 0;
    nvml.used_by_all(&used, &totals[count]);
    handles[count] = nvml.handle();
    identities[count++] = gpu;
}

bool ProgramGpus::read(const Settings& settings, const char* const* environment, ConfigError& error) {
    struct Host {
        GpuIdentity all[kMax];
        VisibleText list;
    };
    const Scratch<Host> host;
    if (!host)
        return error.set("cuslice", "there is no memory to list GPUs in");
    size_t there = 0;
    static_assert(NvmlGpus::kMax <= kMax);
    for (const NvmlGpus gpus; const NvmlGpu& gpu : gpus.view())
        if (gpu.identity(&host->all[there]))
            there++;
    const std::span<const GpuIdentity> gpus(host->all, there);

    VisibleText& list = host->list;
    if (!physical_list(settings, gpus, environment, list, &chosen, error))
        return false;
    if (!chosen)
        for (const GpuIdentity& gpu : gpus)
            add(gpu.uuid, gpus);
    bool more = true;
    for (std::string_view names = list.view(); !names.empty();)
        add(take_item(names, ',', more), gpus);
    return true;
}

}  // namespace cuslice
