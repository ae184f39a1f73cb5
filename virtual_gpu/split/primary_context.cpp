// SPDX-License-Identifier: Apache-2.0
// Each virtual GPU's primary context: a share in the physical one's.
#include "virtual_gpu/split/context_lifetime.h"
#include "virtual_gpu/split/current_context.h"
#include "virtual_gpu/split/default_pools.h"
#include "virtual_gpu/split/functions.h"
#include "virtual_gpu/split/stream.h"
#include "virtual_gpu/split/translate.h"

namespace cuslice {

namespace {

// The last use. `call` gives up the real one, which this held once if it has lived until now.
template <typename Call>
CUresult end(VirtualContext& context, Call call) {
    if (!context.lives)
        return virtual_contexts().end(context), CUDA_SUCCESS;
    const CUdevice physical = split().device(context.device)->physical;
    if (real_lives_on(context)) {
        end_what_was_made(context);
        virtual_contexts().end(context);
        leave_memory(context, physical);
        return CUDA_SUCCESS;
    }
    const CUresult result = call();
    if (result != CUDA_SUCCESS)
        return result;
    virtual_contexts().end(context);
    forget_pools_if_ended(physical);
    return result;
}

template <typename Call>
CUresult release(CUdevice ordinal, Call call) {
    const Split::Device* device = split().device(ordinal);
    if (!device)
        return to_physical(ordinal), call(ordinal);
    DisablingLockGuard lock(lifetimes_mutex());
    begin_if_used_unseen(device->physical, CurrentVirtual::peek());
    VirtualContext& context = virtual_contexts().primary(ordinal);
    if (!context.uses)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (virtual_contexts().give_up(context))
        return CUDA_SUCCESS;
    return end(context, [&] { return call(device->physical); });
}

// Where the real one is its alone the driver does it; else what is its own goes. Either way it lives no longer, and the
// next one to retain it begins it again.
template <typename Call>
CUresult reset(CUdevice ordinal, Call call) {
    const Split::Device* device = split().device(ordinal);
    if (!device)
        return to_physical(ordinal), call(ordinal);
    DisablingLockGuard lock(lifetimes_mutex());
    begin_if_used_unseen(device->physical, CurrentVirtual::peek());
    VirtualContext& context = virtual_contexts().primary(ordinal);
    if (!context.lives)
        return CUDA_SUCCESS;
    if (real_lives_on(context)) {
        end_what_was_made(context);
        virtual_contexts().interrupt(context);
        leave_memory(context, device->physical);
        return CUDA_SUCCESS;
    }
    const CUresult result = call(device->physical);
    if (result != CUDA_SUCCESS)
        return result;
    forget_pools_of(device->physical);
    CUSLICE_PHYSICAL(cuDevicePrimaryCtxRelease_v2)(device->physical);
    virtual_contexts().interrupt(context);
    return result;
}

template <typename Call>
CUresult set_flags(CUdevice ordinal, unsigned flags, Call call) {
    const Split::Device* device = split().device(ordinal);
    if (!device)
        return to_physical(ordinal), call(ordinal);
    // The driver says what it takes; the real context has those that were set last.
    const CUresult result = call(device->physical);
    VirtualContext& context = virtual_contexts().primary(ordinal);
    if (result == CUDA_SUCCESS)
        context.preset = flags, context.flags = flags;
    return result;
}

}  // namespace

namespace split_driver {

CUSLICE_SPLIT(cuDevicePrimaryCtxRetain, handle, ordinal) {
    const Split::Device* device = split().device(ordinal);
    if (!device)
        return to_physical(ordinal), CUSLICE_PHYSICAL(cuDevicePrimaryCtxRetain)(handle, ordinal);
    VirtualContext& context = virtual_contexts().primary(ordinal);
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    DisablingLockGuard lock(lifetimes_mutex());
    begin_if_used_unseen(device->physical, CurrentVirtual::peek());
    if (!context.lives) {
        CUcontext real = nullptr;
        CUresult result = CUSLICE_PHYSICAL(cuDevicePrimaryCtxRetain)(&real, device->physical);
        if (result != CUDA_SUCCESS)
            return result;
        result = check_priority(*device, real);
        if (result != CUDA_SUCCESS) {
            give_up_real(device->physical);
            return result;
        }
        virtual_contexts().begin(context, real);
    }
    virtual_contexts().use(context);
    *handle = context.handle();
    return CUDA_SUCCESS;
}

CUSLICE_SPLIT(cuDevicePrimaryCtxRelease, device) {
    return release(device, [](CUdevice physical) { return CUSLICE_PHYSICAL(cuDevicePrimaryCtxRelease)(physical); });
}
CUSLICE_SPLIT(cuDevicePrimaryCtxRelease_v2, device) {
    return release(device, [](CUdevice physical) { return CUSLICE_PHYSICAL(cuDevicePrimaryCtxRelease_v2)(physical); });
}

CUSLICE_SPLIT(cuDevicePrimaryCtxReset, device) {
    return reset(device, [](CUdevice physical) { return CUSLICE_PHYSICAL(cuDevicePrimaryCtxReset)(physical); });
}
CUSLICE_SPLIT(cuDevicePrimaryCtxReset_v2, device) {
    return reset(device, [](CUdevice physical) { return CUSLICE_PHYSICAL(cuDevicePrimaryCtxReset_v2)(physical); });
}

CUSLICE_SPLIT(cuDevicePrimaryCtxSetFlags, device, flags) {
    return set_flags(device, flags,
                     [&](CUdevice physical) { return CUSLICE_PHYSICAL(cuDevicePrimaryCtxSetFlags)(physical, flags); });
}
CUSLICE_SPLIT(cuDevicePrimaryCtxSetFlags_v2, device, flags) {
    return set_flags(device, flags, [&](CUdevice physical) {
        return CUSLICE_PHYSICAL(cuDevicePrimaryCtxSetFlags_v2)(physical, flags);
    });
}

CUSLICE_SPLIT(cuDevicePrimaryCtxGetState, ordinal, flags, active) {
    CUdevice physical = ordinal;
    to_physical(physical);
    const CUresult result = CUSLICE_PHYSICAL(cuDevicePrimaryCtxGetState)(physical, flags, active);
    if (result != CUDA_SUCCESS || !split().is_open())
        return result;
    const VirtualContext& context = virtual_contexts().primary(ordinal);
    if (!context.lives)
        while_none_ends([&] { begin_if_used_unseen(physical, CurrentVirtual::peek()); });
    *flags = context.preset;
    *active = context.lives;
    return result;
}

}  // namespace split_driver

}  // namespace cuslice
