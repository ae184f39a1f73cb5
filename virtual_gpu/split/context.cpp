// SPDX-License-Identifier: Apache-2.0
// cuCtx*: contexts that a program makes itself are names for the physical GPU's primary context.
#include "virtual_gpu/split/context_lifetime.h"
#include "virtual_gpu/split/current_context.h"
#include "virtual_gpu/split/functions.h"
#include "virtual_gpu/split/handle_registry.h"
#include "virtual_gpu/split/stream.h"
#include "virtual_gpu/split/translate.h"

namespace cuslice {

namespace {

// The ways to wait are one bit each, of which a context has one or none.
bool are_context_flags(unsigned flags) {
    const unsigned how = flags & CU_CTX_SCHED_MASK;
    const bool one_way = how == (how & (0 - how));
    return one_way && (flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) == 0;
}

// A context in the place of a real one, and current. Nothing is left of it where that fails.
CUresult create_in(CUcontext real, const Split::Device& device, CUdevice ordinal, unsigned flags, CUcontext* handle) {
    const CUresult checked = check_priority(device, real);
    if (checked != CUDA_SUCCESS)
        return checked;
    VirtualContext* const context = virtual_contexts().create(ordinal, real, flags);
    if (!context)
        return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult pushed = CurrentVirtual::push({context, real});
    if (pushed == CUDA_SUCCESS)
        *handle = context->handle();
    else
        virtual_contexts().end(*context);
    return pushed;
}

// `call` is what the driver would do, for where the GPUs are not open yet.
template <typename Call>
CUresult create(CUcontext* handle, unsigned flags, CUdevice ordinal, Call call) {
    if (!split().is_open())
        return call();
    const Split::Device* device = split().device(ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!handle || !are_context_flags(flags))
        return CUDA_ERROR_INVALID_VALUE;
    DisablingLockGuard lock(lifetimes_mutex());
    begin_if_used_unseen(device->physical, CurrentVirtual::peek());
    CUcontext real = nullptr;
    const CUresult retained = CUSLICE_PHYSICAL(cuDevicePrimaryCtxRetain)(&real, device->physical);
    if (retained != CUDA_SUCCESS)
        return retained;
    const CUresult created = create_in(real, *device, ordinal, flags, handle);
    if (created != CUDA_SUCCESS)
        give_up_real(device->physical);
    return created;
}

CUresult destroy(VirtualContext& context) {
    DisablingLockGuard lock(lifetimes_mutex());
    if (!context.lives)
        return CUDA_ERROR_INVALID_CONTEXT;
    const CUdevice physical = split().device(context.device)->physical;
    const bool lives_on = real_lives_on(context);
    if (lives_on)
        end_what_was_made(context);
    // Where it is current, it is no longer; the one beneath it is then.
    if (CurrentVirtual::get().context == &context)
        CurrentVirtual::pop(nullptr);
    virtual_contexts().end(context);
    if (!lives_on)
        return give_up_real(physical);
    leave_memory(context, physical);
    return CUDA_SUCCESS;
}

bool has_ended(CUcontext handle, const VirtualContexts::Resolved& resolved) { return handle && !resolved.real; }

template <typename Call>
CUresult destroy(CUcontext handle, Call call) {
    const VirtualContexts::Resolved resolved = virtual_contexts().resolve(handle);
    if (has_ended(handle, resolved))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!resolved.context)
        return call();
    // A primary one isn't ended in this way.
    return resolved.context->primary() ? CUDA_ERROR_INVALID_CONTEXT : destroy(*resolved.context);
}

CUresult set(CUcontext handle) {
    const VirtualContexts::Resolved resolved = virtual_contexts().resolve(handle);
    return has_ended(handle, resolved) ? CUDA_ERROR_INVALID_CONTEXT : CurrentVirtual::set(resolved);
}

CUresult push(CUcontext handle) {
    const VirtualContexts::Resolved resolved = virtual_contexts().resolve(handle);
    return has_ended(handle, resolved) ? CUDA_ERROR_INVALID_CONTEXT : CurrentVirtual::push(resolved);
}

// The same of a named context as of the current one, which no name stands for.
VirtualContexts::Resolved named(CUcontext handle) {
    return handle ? virtual_contexts().resolve(handle) : CurrentVirtual::get();
}

// The virtual GPU of a context on this physical one.
int virtual_device_of(const VirtualContexts::Resolved& context, CUdevice physical) {
    if (context.context)
        return context.context->device;
    const HandleOwner green = handle_registry().find(context.real, HandleKind::green_context);
    return green.known ? green.device : split().first_of(physical);
}

}  // namespace

namespace split_driver {

CUSLICE_SPLIT(cuCtxCreate, context, flags, device) {
    const CUresult result =
        create(context, flags, device, [&] { return CUSLICE_PHYSICAL(cuCtxCreate)(context, flags, device); });
    constexpr unsigned kFirstForm = 3010;
    VirtualContext* made = result == CUDA_SUCCESS ? virtual_contexts().find(*context) : nullptr;
    if (made)
        made->version = kFirstForm;
    return result;
}

CUSLICE_SPLIT(cuCtxCreate_v2, context, flags, device) {
    return create(context, flags, device, [&] { return CUSLICE_PHYSICAL(cuCtxCreate_v2)(context, flags, device); });
}

// A share of the multiprocessors, or of another API's queues, can't be had in a context that others share.
CUSLICE_SPLIT(cuCtxCreate_v3, context, parameters, count, flags, device) {
    const bool wrong = count < 0 || (count && !parameters);
    if (count && split().is_open())
        return wrong ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return create(context, flags, device,
                  [&] { return CUSLICE_PHYSICAL(cuCtxCreate_v3)(context, parameters, count, flags, device); });
}

CUSLICE_SPLIT(cuCtxCreate_v4, context, parameters, flags, device) {
    const bool has_wishes = split().is_open() && parameters;
    if (has_wishes && parameters->numExecAffinityParams > 0)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    if (has_wishes && parameters->cigParams)
        return CUDA_ERROR_NOT_SUPPORTED;
    return create(context, flags, device,
                  [&] { return CUSLICE_PHYSICAL(cuCtxCreate_v4)(context, parameters, flags, device); });
}

CUSLICE_SPLIT(cuCtxDestroy, context) {
    return destroy(context, [&] { return CUSLICE_PHYSICAL(cuCtxDestroy)(context); });
}

CUSLICE_SPLIT(cuCtxDestroy_v2, context) {
    return destroy(context, [&] { return CUSLICE_PHYSICAL(cuCtxDestroy_v2)(context); });
}

CUSLICE_SPLIT(cuCtxAttach, handle, flags) {
    const VirtualContexts::Resolved now = CurrentVirtual::get();
    const bool made_by_program = now.context && !now.context->primary();
    if (!made_by_program || !handle) {
        const CUresult result = CUSLICE_PHYSICAL(cuCtxAttach)(handle, flags);
        if (result == CUDA_SUCCESS && handle)
            *handle = CurrentVirtual::handle();
        return result;
    }
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    virtual_contexts().use(*now.context);
    *handle = now.context->handle();
    return CUDA_SUCCESS;
}

CUSLICE_SPLIT(cuCtxDetach, handle) {
    const VirtualContexts::Resolved resolved = virtual_contexts().resolve(handle);
    if (!resolved.context || resolved.context->primary())
        return CUSLICE_PHYSICAL(cuCtxDetach)(resolved.real);
    // Only of the one that is current.
    if (!resolved.real || CurrentVirtual::get().context != resolved.context)
        return CUDA_ERROR_INVALID_CONTEXT;
    return virtual_contexts().give_up(*resolved.context) ? CUDA_SUCCESS : destroy(*resolved.context);
}

CUSLICE_SPLIT(cuCtxSetCurrent, context) { return set(context); }
CUSLICE_SPLIT(cuCtxPushCurrent, context) { return push(context); }
CUSLICE_SPLIT(cuCtxPushCurrent_v2, context) { return push(context); }
CUSLICE_SPLIT(cuCtxPopCurrent, context) { return CurrentVirtual::pop(context); }
CUSLICE_SPLIT(cuCtxPopCurrent_v2, context) { return CurrentVirtual::pop(context); }

CUSLICE_SPLIT(cuCtxGetCurrent, context) {
    const CUresult result = CUSLICE_PHYSICAL(cuCtxGetCurrent)(context);
    if (result == CUDA_SUCCESS && *context)
        *context = CurrentVirtual::handle();
    return result;
}

CUSLICE_SPLIT(cuCtxGetDevice, device) {
    const CUresult result = CUSLICE_PHYSICAL(cuCtxGetDevice)(device);
    if (result == CUDA_SUCCESS)
        *device = CurrentVirtual::device();
    return result;
}

CUSLICE_SPLIT(cuCtxGetDevice_v2, device, handle) {
    const VirtualContexts::Resolved resolved = named(handle);
    if (has_ended(handle, resolved))
        return CUDA_ERROR_INVALID_CONTEXT;
    const CUresult result = CUSLICE_PHYSICAL(cuCtxGetDevice_v2)(device, resolved.real);
    if (result != CUDA_SUCCESS)
        return result;
    *device = virtual_device_of(resolved, *device);
    return result;
}

CUSLICE_SPLIT(cuCtxGetFlags, flags) {
    const CUresult result = CUSLICE_PHYSICAL(cuCtxGetFlags)(flags);
    const VirtualContexts::Resolved now = CurrentVirtual::get();
    // How a thread waits is each context's own; the others are the real one's too.
    if (result == CUDA_SUCCESS && now.context)
        *flags = (*flags & ~static_cast<unsigned>(CU_CTX_SCHED_MASK)) | now.context->flags;
    return result;
}

CUSLICE_SPLIT(cuCtxSetFlags, flags) {
    const CUresult result = CUSLICE_PHYSICAL(cuCtxSetFlags)(flags);
    const VirtualContexts::Resolved now = CurrentVirtual::get();
    if (result == CUDA_SUCCESS && now.context)
        now.context->flags = flags;
    return result;
}

CUSLICE_SPLIT(cuCtxGetApiVersion, handle, version) {
    const VirtualContexts::Resolved resolved = named(handle);
    if (has_ended(handle, resolved))
        return CUDA_ERROR_INVALID_CONTEXT;
    const CUresult result = CUSLICE_PHYSICAL(cuCtxGetApiVersion)(resolved.real, version);
    if (result == CUDA_SUCCESS && resolved.context && resolved.context->version)
        *version = resolved.context->version;
    return result;
}

CUSLICE_SPLIT(cuCtxGetId, handle, id) {
    const VirtualContexts::Resolved resolved = named(handle);
    if (has_ended(handle, resolved))
        return CUDA_ERROR_INVALID_CONTEXT;
    const CUresult result = CUSLICE_PHYSICAL(cuCtxGetId)(resolved.real, id);
    // Not the real one's, which has numbers from one up, too.
    constexpr uint64_t kOurs = 1ull << 63;
    if (result == CUDA_SUCCESS && resolved.context)
        *id = kOurs | resolved.context->number;
    return result;
}

}  // namespace split_driver

}  // namespace cuslice
