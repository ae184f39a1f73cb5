// cuCtx*: contexts that a program makes itself are names for the physical GPU's primary context.
#include "virtual_gpu/split/context_end.h"
#include "virtual_gpu/split/current_context.h"
#include "virtual_gpu/split/functions.h"
#include "virtual_gpu/split/handle_registry.h"
#include "virtual_gpu/split/stream.h"
#include "virtual_gpu/split/stream_ordered.h"
#include "virtual_gpu/split/translate.h"

namespace cuslice {

namespace {

// `call` is what the driver would do, for where the GPUs are not open yet.
template <typename Call>
CUresult create(CUcontext* handle, unsigned flags, CUdevice ordinal, Call call) {
    if (!split().is_open()) return call();
    const Split::Device* device = split().device(ordinal);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    const unsigned how = flags & CU_CTX_SCHED_MASK;
    const bool one_way = how == (how & (0 - how));
    if (!handle || !one_way || flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) return CUDA_ERROR_INVALID_VALUE;
    DisablingLockGuard lock(lifetimes_mutex());
    CUcontext real = nullptr;
    CUresult result = CUSLICE_PHYSICAL(cuDevicePrimaryCtxRetain)(&real, device->physical);
    if (result != CUDA_SUCCESS) return result;
    result = check_priority(*device, real);
    VirtualContext* context = nullptr;
    if (result == CUDA_SUCCESS) {
        context = virtual_contexts().create(ordinal, real, flags);
        result = context ? CurrentVirtual::push({context, real}) : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result == CUDA_SUCCESS) {
        *handle = context->handle();
        return result;
    }
    if (context) virtual_contexts().end(*context);
    CUSLICE_PHYSICAL(cuDevicePrimaryCtxRelease_v2)(device->physical);
    return result;
}

CUresult destroy(VirtualContext& context) {
    DisablingLockGuard lock(lifetimes_mutex());
    if (!context.lives) return CUDA_ERROR_INVALID_CONTEXT;
    const Split::Device& device = *split().device(context.device);
    const bool company = virtual_contexts().has_company(context);
    if (company) end_what_was_made(context);
    // Where it is current, it is no longer; the one beneath it is then.
    if (CurrentVirtual::get().context == &context) CurrentVirtual::pop(nullptr);
    virtual_contexts().end(context);
    if (!company) {
        const CUresult result = CUSLICE_PHYSICAL(cuDevicePrimaryCtxRelease_v2)(device.physical);
        if (result == CUDA_SUCCESS) forget_pools_if_ended(device.physical);
        return result;
    }
    leave_memory(context, device.physical);
    return CUDA_SUCCESS;
}

template <typename Call>
CUresult destroy(CUcontext handle, Call call) {
    const VirtualContexts::Resolved resolved = virtual_contexts().resolve(handle);
    if (!resolved.context) return resolved.real || !handle ? call() : CUDA_ERROR_INVALID_CONTEXT;
    // A primary one isn't ended in this way, nor one that has ended.
    return resolved.context->primary() || !resolved.real ? CUDA_ERROR_INVALID_CONTEXT : destroy(*resolved.context);
}

CUresult set(CUcontext handle) {
    const VirtualContexts::Resolved resolved = virtual_contexts().resolve(handle);
    return resolved.real || !handle ? CurrentVirtual::set(resolved) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult push(CUcontext handle) {
    const VirtualContexts::Resolved resolved = virtual_contexts().resolve(handle);
    return resolved.real || !handle ? CurrentVirtual::push(resolved) : CUDA_ERROR_INVALID_CONTEXT;
}

// The same of a named context as of the current one, which no name stands for.
VirtualContexts::Resolved named(CUcontext handle) {
    return handle ? virtual_contexts().resolve(handle) : CurrentVirtual::get();
}

}  // namespace

namespace split_driver {

CUSLICE_SPLIT(cuCtxCreate, context, flags, device) {
    const CUresult result =
        create(context, flags, device, [&] { return CUSLICE_PHYSICAL(cuCtxCreate)(context, flags, device); });
    constexpr unsigned kFirstForm = 3010;
    VirtualContext* made = result == CUDA_SUCCESS ? virtual_contexts().find(*context) : nullptr;
    if (made) made->version = kFirstForm;
    return result;
}

CUSLICE_SPLIT(cuCtxCreate_v2, context, flags, device) {
    return create(context, flags, device, [&] { return CUSLICE_PHYSICAL(cuCtxCreate_v2)(context, flags, device); });
}

// A share of the multiprocessors, or of another API's queues, can't be had in a context that others share.
CUSLICE_SPLIT(cuCtxCreate_v3, context, parameters, count, flags, device) {
    if (split().is_open() && (count < 0 || (count && !parameters))) return CUDA_ERROR_INVALID_VALUE;
    if (split().is_open() && count) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return create(context, flags, device,
                  [&] { return CUSLICE_PHYSICAL(cuCtxCreate_v3)(context, parameters, count, flags, device); });
}

CUSLICE_SPLIT(cuCtxCreate_v4, context, parameters, flags, device) {
    if (split().is_open() && parameters && parameters->numExecAffinityParams > 0)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    if (split().is_open() && parameters && parameters->cigParams) return CUDA_ERROR_NOT_SUPPORTED;
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
    if (!now.context || now.context->primary() || !handle) {
        const CUresult result = CUSLICE_PHYSICAL(cuCtxAttach)(handle, flags);
        if (result == CUDA_SUCCESS && handle) *handle = CurrentVirtual::handle();
        return result;
    }
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    virtual_contexts().use(*now.context);
    *handle = now.context->handle();
    return CUDA_SUCCESS;
}

CUSLICE_SPLIT(cuCtxDetach, handle) {
    const VirtualContexts::Resolved resolved = virtual_contexts().resolve(handle);
    if (!resolved.context || resolved.context->primary()) return CUSLICE_PHYSICAL(cuCtxDetach)(resolved.real);
    // Only of the one that is current.
    if (!resolved.real || CurrentVirtual::get().context != resolved.context) return CUDA_ERROR_INVALID_CONTEXT;
    return virtual_contexts().give_up(*resolved.context) ? CUDA_SUCCESS : destroy(*resolved.context);
}

CUSLICE_SPLIT(cuCtxSetCurrent, context) { return set(context); }
CUSLICE_SPLIT(cuCtxPushCurrent, context) { return push(context); }
CUSLICE_SPLIT(cuCtxPushCurrent_v2, context) { return push(context); }
CUSLICE_SPLIT(cuCtxPopCurrent, context) { return CurrentVirtual::pop(context); }
CUSLICE_SPLIT(cuCtxPopCurrent_v2, context) { return CurrentVirtual::pop(context); }

CUSLICE_SPLIT(cuCtxGetCurrent, context) {
    const CUresult result = CUSLICE_PHYSICAL(cuCtxGetCurrent)(context);
    if (result == CUDA_SUCCESS && *context) *context = CurrentVirtual::handle();
    return result;
}

CUSLICE_SPLIT(cuCtxGetDevice, device) {
    const CUresult result = CUSLICE_PHYSICAL(cuCtxGetDevice)(device);
    if (result == CUDA_SUCCESS) *device = CurrentVirtual::device();
    return result;
}

CUSLICE_SPLIT(cuCtxGetDevice_v2, device, handle) {
    const VirtualContexts::Resolved resolved = named(handle);
    if (handle && !resolved.real) return CUDA_ERROR_INVALID_CONTEXT;
    const CUresult result = CUSLICE_PHYSICAL(cuCtxGetDevice_v2)(device, resolved.real);
    if (result != CUDA_SUCCESS) return result;
    const HandleOwner green = handle_registry().find(resolved.real, HandleKind::green_context);
    *device = resolved.context ? int{resolved.context->device} : green.known ? green.device : split().first_of(*device);
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
    if (result == CUDA_SUCCESS && now.context) now.context->flags = flags;
    return result;
}

CUSLICE_SPLIT(cuCtxGetApiVersion, handle, version) {
    const VirtualContexts::Resolved resolved = named(handle);
    if (handle && !resolved.real) return CUDA_ERROR_INVALID_CONTEXT;
    const CUresult result = CUSLICE_PHYSICAL(cuCtxGetApiVersion)(resolved.real, version);
    if (result == CUDA_SUCCESS && resolved.context && resolved.context->version) *version = resolved.context->version;
    return result;
}

CUSLICE_SPLIT(cuCtxGetId, handle, id) {
    const VirtualContexts::Resolved resolved = named(handle);
    if (handle && !resolved.real) return CUDA_ERROR_INVALID_CONTEXT;
    const CUresult result = CUSLICE_PHYSICAL(cuCtxGetId)(resolved.real, id);
    // Not the real one's, which has numbers from one up, too.
    constexpr std::uint64_t kOurs = 1ull << 63;
    if (result == CUDA_SUCCESS && resolved.context) *id = kOurs | resolved.context->number;
    return result;
}

}  // namespace split_driver

}  // namespace cuslice
