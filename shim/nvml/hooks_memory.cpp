// SPDX-License-Identifier: Apache-2.0
// NVML's view of a GPU's memory: the slice, in the same figures as CUDA's.
#include <algorithm>

#include "shim/nvml/load.h"
#include "shim/nvml/slice_seen.h"

namespace cuslice {

namespace {

struct NvmlView {
    uint64_t total, reserved, free, used;
};

// The slice of the GPU behind a handle; false where there is none, and NVML's answer stands. The three parts are the
// total: the headroom, and what others leave of the slice on a crowded GPU, are neither free nor used.
bool slice_view(nvmlDevice_t device, uint64_t physical_total, uint64_t physical_free, NvmlView* view) {
    const SliceSeen seen(device, physical_total);
    if (!seen.limited())
        return false;
    const uint64_t total = seen.total(), used = seen.used();
    const uint64_t free = std::min(seen.free(physical_free), total - used);
    *view = {total, total - used - free, free, used};
    return true;
}

}  // namespace

}  // namespace cuslice

using namespace cuslice;

CUSLICE_NVML_HOOK(nvmlDeviceGetMemoryInfo, device, memory) {
    const nvmlReturn_t result = CUSLICE_REAL_NVML(nvmlDeviceGetMemoryInfo)(device, memory);
    NvmlView view;
    if (result == NVML_SUCCESS && slice_view(device, memory->total, memory->free, &view))
        *memory = {view.total, view.free, view.reserved + view.used};  // NVML's first version counts it as used
    return result;
}

CUSLICE_NVML_HOOK(nvmlDeviceGetMemoryInfo_v2, device, memory) {
    const nvmlReturn_t result = CUSLICE_REAL_NVML(nvmlDeviceGetMemoryInfo_v2)(device, memory);
    NvmlView view;
    if (result == NVML_SUCCESS && slice_view(device, memory->total, memory->free, &view))
        *memory = {memory->version, view.total, view.reserved, view.free, view.used};
    return result;
}
