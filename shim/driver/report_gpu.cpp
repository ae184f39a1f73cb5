// SPDX-License-Identifier: Apache-2.0
#include "shim/driver/report_gpu.h"

#include "policy/base/cancellation.h"
#include "virtual_gpu/driver/nvml_table.h"
#include "virtual_gpu/split/split.h"

namespace cuslice {

namespace {

// One more than the index that NVML had; 0: it was not asked, -1: it had none.
constinit std::atomic<int> known_indices[Process::kMaxGpus]{};

}  // namespace

int index_of(const VirtualGpu& gpu) {
    const GpuIdentity& identity = gpu.physical().identity();
    if (identity.index >= 0)
        return identity.index;
    std::atomic<int>& known = known_indices[gpu.ordinal()];
    if (const int index = known.load(std::memory_order_relaxed))
        return index > 0 ? index - 1 : -1;
    const DisableCancellation uncancelled;
    NvmlGpu nvml;
    GpuIdentity seen;
    const bool there = process().start_nvml() && nvml.open(identity.uuid) && nvml.identity(&seen);
    known.store(there ? seen.index + 1 : -1, std::memory_order_relaxed);
    return there ? seen.index : -1;
}

void append_gpu(LogLine& line, const VirtualGpu& gpu) {
    if (const Split::Device* device = split().device(gpu.ordinal()); device && device->part.split)
        line.append("virtual GPU ", gpu.ordinal(), " (partition ", device->part.part + 1u, " of ", device->part.parts,
                    " of ");
    line.append("GPU ");
    if (const int index = index_of(gpu); index >= 0)
        line.append(index);
    else
        line.append(gpu.physical().identity().uuid);
    line.append(gpu.physical().is_split() ? ", " : " (", gpu.name(), ')');
}

}  // namespace cuslice
