// Primary contexts: one for each device, shared by everybody in the process. Its handle stays the same for good.

#include "fake/driver/api_prologue.h"
#include "fake/driver/lifetime.h"
#include "fake/driver/primary_context.h"
#include "fake/driver/state.h"

using namespace cuslice::fake;

namespace {

CUresult release(CUdevice device) {
    Gpu* gpu = driver().gpu(device);
    if (gpu == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    drain_primary(*gpu, true);
    const std::lock_guard hold(driver().lock);
    return release_primary(*gpu);
}

/// Ends the context whoever retains it; the retains stay, and the next one starts it again.
CUresult reset(CUdevice device) {
    Gpu* gpu = driver().gpu(device);
    if (gpu == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    drain_primary(*gpu, false);
    const std::lock_guard hold(driver().lock);
    Primary& primary = primary_of(*gpu);
    if (primary.context != nullptr && primary.context->active) end_context(*primary.context);
    return CUDA_SUCCESS;
}

CUresult set_flags(CUdevice device, unsigned flags) {
    Gpu* gpu = driver().gpu(device);
    if (gpu == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if ((flags & ~unsigned{CU_CTX_FLAGS_MASK}) != 0) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard hold(driver().lock);
    Primary& primary = primary_of(*gpu);
    primary.flags = flags;
    if (primary.context != nullptr) primary.context->flags = flags;
    return CUDA_SUCCESS;
}

}  // namespace

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice device) {
    CUSLICE_ENTER(cuDevicePrimaryCtxRetain)
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Gpu* gpu = driver().gpu(device);
    if (gpu == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const std::lock_guard hold(driver().lock);
    Context* context = nullptr;
    if (const CUresult bad = retain_primary(*gpu, context); bad != CUDA_SUCCESS) return bad;
    *out = context->handle;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
    CUSLICE_ENTER(cuDevicePrimaryCtxRelease)
    return release(device);
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    CUSLICE_ENTER(cuDevicePrimaryCtxRelease_v2)
    return release(device);
}

CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice device) {
    CUSLICE_ENTER(cuDevicePrimaryCtxReset)
    return reset(device);
}

CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice device) {
    CUSLICE_ENTER(cuDevicePrimaryCtxReset_v2)
    return reset(device);
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags) {
    CUSLICE_ENTER(cuDevicePrimaryCtxSetFlags)
    return set_flags(device, flags);
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
    CUSLICE_ENTER(cuDevicePrimaryCtxSetFlags_v2)
    return set_flags(device, flags);
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
    CUSLICE_ENTER(cuDevicePrimaryCtxGetState)
    Gpu* gpu = driver().gpu(device);
    if (gpu == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard hold(driver().lock);
    const Primary& primary = primary_of(*gpu);
    *flags = primary.flags;
    *active = primary.context != nullptr && primary.context->active;
    return CUDA_SUCCESS;
}
