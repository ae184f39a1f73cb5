// NVML's view of a GPU's memory: the slice, in the same figures as CUDA's.
#include <algorithm>

#include "shim/nvml/load.h"
#include "virtual_gpu/driver/nvml_table.h"
#include "virtual_gpu/nvml.h"

CUSLICE_NVML_HOOK(nvmlDeviceGetMemoryInfo)
CUSLICE_NVML_HOOK(nvmlDeviceGetMemoryInfo_v2)

namespace cuslice {

namespace {

struct NvmlView {
    std::uint64_t total, free, used;
};

// The slice of the GPU behind a handle; false where there is none, and NVML's answer stands. A program that only
// watches has opened no GPU through CUDA: its slice is worked out here, and it holds nothing of it.
bool slice_view(nvml::Device device, std::uint64_t physical_total, std::uint64_t physical_free, NvmlView* view) {
    GpuIdentity identity;
    if (process().settings().entries().empty() || !NvmlGpu(device).identity(&identity)) return false;
    if (VirtualGpu* gpu = process().find_gpu(identity.uuid)) {
        if (!gpu->limited()) return false;
        const MemoryView seen = gpu->view(physical_free);
        *view = {seen.total, seen.free, std::min(gpu->budget().used(), seen.total)};
        return true;
    }
    const VirtualGpu::Slice slice = process().slice_of(identity, physical_total);
    if (!slice.limited) return false;
    *view = {slice.limit, std::min(slice.limit, physical_free), 0};
    return true;
}

}  // namespace

}  // namespace cuslice

using namespace cuslice;

nvml::Return nvmlDeviceGetMemoryInfo(nvml::Device device, nvml::Memory* memory) {
    if (const nvml::Return loaded = nvml_ready(); loaded != nvml::SUCCESS) return loaded;
    const nvml::Return result = CUSLICE_REAL_NVML(nvmlDeviceGetMemoryInfo)(device, memory);
    NvmlView view;
    if (result == nvml::SUCCESS && slice_view(device, memory->total, memory->free, &view))
        *memory = {view.total, view.free, view.used};
    return result;
}

nvml::Return nvmlDeviceGetMemoryInfo_v2(nvml::Device device, nvml::MemoryV2* memory) {
    if (const nvml::Return loaded = nvml_ready(); loaded != nvml::SUCCESS) return loaded;
    const nvml::Return result = CUSLICE_REAL_NVML(nvmlDeviceGetMemoryInfo_v2)(device, memory);
    NvmlView view;
    // What the driver keeps for itself is outside every slice, so a slice has no reserved part.
    if (result == nvml::SUCCESS && slice_view(device, memory->total, memory->free, &view))
        *memory = {memory->version, view.total, 0, view.free, view.used};
    return result;
}
