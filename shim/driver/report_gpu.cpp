// SPDX-License-Identifier: Apache-2.0
#include "shim/driver/report_gpu.h"

#include "policy/base/cancellation.h"
#include "virtual_gpu/driver/nvml_table.h"
#include "virtual_gpu/split/split.h"

namespace cuslice {

namespace {

// Two more than the index that NVML had, 1 where it had none; 0: it was not asked.
constinit std::atomic<int> known_indices[Process::kMaxGpus]{};

// As CUDA writes it. NVML has eight digits of domain, and which of the two was asked depends on the settings.
std::string_view short_pci(std::string_view pci) {
    return pci.find(':') == 8 && starts_with(pci, "0000") ? slice(pci, 4) : pci;
}

}  // namespace

int index_of(const VirtualGpu& gpu) {
    const GpuIdentity& identity = gpu.physical().identity();
    if (identity.index >= 0)
        return identity.index;
    std::atomic<int>& known = known_indices[gpu.ordinal()];
    int index = known.load(std::memory_order_relaxed);
    if (!index) {
        const DisableCancellation uncancelled;
        NvmlGpu nvml;
        GpuIdentity seen;
        const bool there = process().start_nvml() && nvml.open(identity.uuid) && nvml.identity(&seen);
        index = there ? seen.index + 2 : 1;
        known.store(index, std::memory_order_relaxed);
    }
    return index - 2;
}

LogLine& append_gpu(LogLine& line, const VirtualGpu& gpu) {
    if (const Split::Device* device = split().device(gpu.ordinal()); device && device->part.split)
        line.append("virtual GPU ", gpu.ordinal(), " (partition ", device->part.part + 1u, " of ", device->part.parts,
                    " of ");
    line.append("GPU ");
    if (const int index = index_of(gpu); index >= 0)
        line.append(index);
    else
        line.append(gpu.physical().identity().uuid);
    return line.append(gpu.physical().is_split() ? ", " : " (", gpu.name(), ')');
}

LogLine& append_identity(LogLine& line, const VirtualGpu& gpu) {
    line.append("virtual ", gpu.ordinal(), " → physical ");
    if (const int index = index_of(gpu); index >= 0)
        line.append(index, ", ");
    return line.append(gpu.identity().uuid, ", ", gpu.name(), ", ", short_pci(gpu.identity().pci));
}

}  // namespace cuslice
