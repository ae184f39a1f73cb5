// SPDX-License-Identifier: Apache-2.0
// cuDeviceTotalMem: the slice.
#include <algorithm>

#include "shim/driver/export.h"
#include "virtual_gpu/gpu/memory_view.h"

namespace cuslice {

namespace {

constexpr auto shown_total = [](auto real, auto* bytes, CUdevice device) {
    const CUresult result = real(bytes, device);
    if (result != CUDA_SUCCESS || inside_hook || !process().limits_anything())
        return result;
    VirtualGpu* gpu = process().gpu_of(device);
    if (gpu && gpu->limited()) {
        const DisableCancellation uncancelled;  // the ledger is read
        using Size = std::remove_pointer_t<decltype(bytes)>;
        *bytes = static_cast<Size>(std::min<uint64_t>(*bytes, limit_to_come(*gpu)));
    }
    return result;
};

}  // namespace

CUSLICE_HOOK_FORM(cuDeviceTotalMem, shown_total, bytes, device)
CUSLICE_HOOK_FORM(cuDeviceTotalMem_v2, shown_total, bytes, device)

}  // namespace cuslice
