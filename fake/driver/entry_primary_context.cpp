// SPDX-License-Identifier: Apache-2.0
// Primary contexts: one for each device, shared by everybody in the process. Its handle stays the same for good.

#include "fake/driver/api_prologue.h"
#include "fake/driver/lifetime.h"
#include "fake/driver/primary_context.h"
#include "fake/driver/state.h"

using namespace cuslice::fake;

namespace {

CUresult release(CUdevice device) {
    CUSLICE_FIND(Gpu, gpu, find_gpu(device, gpu));
    drain_primary(*gpu, true);
    const DriverLock hold;
    return release_primary(*gpu);
}

/// Ends the context whoever retains it; the retains stay, and the next one starts it again.
CUresult reset(CUdevice device) {
    CUSLICE_FIND(Gpu, gpu, find_gpu(device, gpu));
    drain_primary(*gpu, false);
    const DriverLock hold;
    Primary& primary = primary_of(*gpu);
    if (primary.context != nullptr && primary.context->active)
        end_context(*primary.context);
    return CUDA_SUCCESS;
}

CUresult set_flags(CUdevice device, unsigned flags) {
    CUSLICE_FIND(Gpu, gpu, find_gpu(device, gpu));
    if ((flags & ~unsigned{CU_CTX_FLAGS_MASK}) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    const DriverLock hold;
    Primary& primary = primary_of(*gpu);
    primary.flags = flags;
    if (primary.context != nullptr)
        primary.context->flags = flags;
    return CUDA_SUCCESS;
}

}  // namespace

CUSLICE_ENTRY(cuDevicePrimaryCtxRetain, out, device) {
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND(Gpu, gpu, find_gpu(device, gpu));
    const DriverLock hold;
    CUSLICE_FIND(Context, context, retain_primary(*gpu, context));
    *out = context->handle;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY_PAIR(cuDevicePrimaryCtxRelease, release, device)
CUSLICE_ENTRY_PAIR(cuDevicePrimaryCtxReset, reset, device)
CUSLICE_ENTRY_PAIR(cuDevicePrimaryCtxSetFlags, set_flags, device, flags)

CUSLICE_ENTRY(cuDevicePrimaryCtxGetState, device, flags, active) {
    CUSLICE_FIND(Gpu, gpu, find_gpu(device, gpu));
    if (flags == nullptr || active == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const DriverLock hold;
    const Primary& primary = primary_of(*gpu);
    *flags = primary.flags;
    *active = primary.context != nullptr && primary.context->active;
    return CUDA_SUCCESS;
}
