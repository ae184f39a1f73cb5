// SPDX-License-Identifier: Apache-2.0
// Contexts that the program makes, and the current one.

#include "fake/driver/api_prologue.h"
#include "fake/driver/context.h"
#include "fake/driver/lifetime.h"
#include "fake/driver/state.h"

using namespace cuslice::fake;

namespace {

CUresult create(CUcontext* out, unsigned flags, CUdevice device, unsigned api_version) {
    if (out == nullptr || (flags & ~unsigned{CU_CTX_FLAGS_MASK}) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    const unsigned schedule = flags & CU_CTX_SCHED_MASK;
    if (schedule != 0 && (schedule & (schedule - 1)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND(Gpu, gpu, find_gpu(device, gpu));
    const DriverLock hold;
    CUSLICE_FIND(Context, context, create_context(*gpu, flags, false, context));
    context->api_version = api_version;
    push_context(context->handle);
    *out = context->handle;
    return CUDA_SUCCESS;
}

CUresult destroy(CUcontext handle) {
    if (Context* context = live_context(handle); context != nullptr && !context->primary)
        drain_streams(*context);
    const DriverLock hold;
    Context* context = live_context(handle);
    if (context == nullptr || context->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (current_handle == handle)
        pop_context();
    end_context(*context);
    return CUDA_SUCCESS;
}

CUresult pop(CUcontext* out) {
    CUSLICE_FIND_CURRENT(context);
    const CUcontext top = pop_context();
    if (out != nullptr)
        *out = top;
    return CUDA_SUCCESS;
}

CUresult push(CUcontext handle) {
    if (live_context(handle) == nullptr)
        return CUDA_ERROR_INVALID_CONTEXT;
    push_context(handle);
    return CUDA_SUCCESS;
}

/// The context asked for: the current one where the program says null.
CUresult chosen_context(CUcontext handle, Context*& context) {
    if (handle == nullptr)
        return current_context(context);
    context = live_context(handle);
    return context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

CUresult synchronize(CUcontext handle) {
    CUSLICE_FIND(Context, context, chosen_context(handle, context));
    return synchronize_context(*context);
}

}  // namespace

CUSLICE_ENTRY(cuCtxCreate, out, flags, device) { return create(out, flags, device, 3010); }

CUSLICE_ENTRY(cuCtxCreate_v2, out, flags, device) { return create(out, flags, device, 3020); }

CUSLICE_ENTRY(cuCtxCreate_v3, out, affinity, count, flags, device) {
    if (count < 0 || (count > 0 && affinity == nullptr))
        return CUDA_ERROR_INVALID_VALUE;
    if (count > 0)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return create(out, flags, device, 3020);
}

CUSLICE_ENTRY(cuCtxCreate_v4, out, params, flags, device) {
    if (params != nullptr && params->numExecAffinityParams > 0)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    if (params != nullptr && params->cigParams != nullptr)
        CUSLICE_UNSUPPORTED("cuCtxCreate_v4 with CIG parameters");
    return create(out, flags, device, 3020);
}

CUSLICE_ENTRY_PAIR(cuCtxDestroy, destroy, context)

CUSLICE_ENTRY(cuCtxAttach, out, flags) {
    if (out == nullptr || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_CURRENT(context);
    const DriverLock hold;
    context->attached++;
    *out = context->handle;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuCtxDetach, handle) {
    Context* context = live_context(handle);
    if (context == nullptr || handle != current_handle)
        return CUDA_ERROR_INVALID_CONTEXT;
    {
        const DriverLock hold;
        if (--context->attached > 0)
            return CUDA_SUCCESS;
    }
    return destroy(handle);
}

CUSLICE_ENTRY_PAIR(cuCtxPushCurrent, push, context)
CUSLICE_ENTRY_PAIR(cuCtxPopCurrent, pop, out)

CUSLICE_ENTRY(cuCtxSetCurrent, handle) {
    if (handle != nullptr && live_context(handle) == nullptr)
        return CUDA_ERROR_INVALID_CONTEXT;
    set_context(handle);
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuCtxGetCurrent, out) {
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    *out = current_handle;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuCtxGetDevice, device) {
    if (device == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_CURRENT(context);
    *device = context->gpu->ordinal;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuCtxGetDevice_v2, device, handle) {
    if (device == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND(Context, context, chosen_context(handle, context));
    *device = context->gpu->ordinal;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuCtxSynchronize) { return synchronize(nullptr); }

CUSLICE_ENTRY(cuCtxSynchronize_v2, context) { return synchronize(context); }

CUSLICE_ENTRY(cuCtxGetApiVersion, handle, version) {
    if (version == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND(Context, context, chosen_context(handle, context));
    *version = context->api_version;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuCtxGetId, handle, id) {
    if (id == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND(Context, context, chosen_context(handle, context));
    *id = context->number;
    return CUDA_SUCCESS;
}
