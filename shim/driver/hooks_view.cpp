// What a program is told of a GPU's memory: the slice.
#include <algorithm>

#include "shim/driver/export.h"
#include "shim/entry.h"
#include "virtual_gpu/driver/table.h"

namespace cuslice {

namespace {

// The slice as this thread's context has it; false where nothing is limited, and what the driver said stands. The
// driver has just answered, so there is a context; with one GPU it is known whose.
bool current_view(std::uint64_t physical_free, MemoryView* view) {
    if (inside_hook || !process().limits_anything()) return false;
    const bool one = process().gpu_count() == 1 && process().gpu(0).measured();
    VirtualGpu* gpu = one ? &process().gpu(0) : process().current().gpu;
    if (!gpu || !gpu->limited()) return false;
    *view = gpu->view(physical_free);
    return true;
}

template <typename Size>
CUresult shown_total(Size* bytes, CUdevice device, CUresult result) {
    if (result != CUDA_SUCCESS || inside_hook || !process().limits_anything()) return result;
    const VirtualGpu* gpu = process().gpu_of(device);
    if (gpu && gpu->limited()) *bytes = static_cast<Size>(std::min<std::uint64_t>(*bytes, gpu->limit()));
    return result;
}

}  // namespace

CUSLICE_HOOK cuMemGetInfo_v2(size_t* free, size_t* total) {
    if (ready() != Readiness::ready) return unavailable();
    const CUresult result = CUSLICE_REAL(cuMemGetInfo_v2)(free, total);
    MemoryView view;
    if (result != CUDA_SUCCESS || !current_view(free ? *free : 0, &view)) return result;
    if (free) *free = view.free;
    if (total) *total = view.total;
    return result;
}

// The old form has 32 bits for each, which the driver fills as it sees fit; the slice can only be less.
CUSLICE_HOOK cuMemGetInfo(unsigned* free, unsigned* total) {
    if (ready() != Readiness::ready) return unavailable();
    const CUresult result = CUSLICE_REAL(cuMemGetInfo)(free, total);
    MemoryView view;
    if (result != CUDA_SUCCESS || !current_view(~0ull, &view)) return result;
    if (free) *free = static_cast<unsigned>(std::min<std::uint64_t>(*free, view.free));
    if (total) *total = static_cast<unsigned>(std::min<std::uint64_t>(*total, view.total));
    return result;
}

CUSLICE_HOOK cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
    if (ready() != Readiness::ready) return unavailable();
    return shown_total(bytes, device, CUSLICE_REAL(cuDeviceTotalMem_v2)(bytes, device));
}

CUSLICE_HOOK cuDeviceTotalMem(unsigned* bytes, CUdevice device) {
    if (ready() != Readiness::ready) return unavailable();
    return shown_total(bytes, device, CUSLICE_REAL(cuDeviceTotalMem)(bytes, device));
}

}  // namespace cuslice
