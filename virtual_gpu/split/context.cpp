// cuCtx*: contexts that a program makes itself are names for the physical GPU's primary context.
#include "virtual_gpu/split/context_end.h"
#include "virtual_gpu/split/current_context.h"
#include "virtual_gpu/split/functions.h"
#include "virtual_gpu/split/handle_registry.h"
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
    LockGuard lock(lifetimes_mutex());
    CUcontext real = nullptr;
    CUresult result = CUSLICE_PHYSICAL(cuDevicePrimaryCtxRetain)(&real, device->physical);
    if (result != CUDA_SUCCESS) return result;
    VirtualContext* context = virtual_contexts().create(ordinal, real, flags);
    result = context ? CurrentVirtual::push({context, real}) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) {
        *handle = context->handle();
        return result;
    }
    if (context) virtual_contexts().end(*context);
    CUSLICE_PHYSICAL(cuDevicePrimaryCtxRelease_v2)(device->physical);
    return result;
}

CUresult destroy(VirtualContext& context) {
    LockGuard lock(lifetimes_mutex());
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
    const VirtualContexts::Meaning meaning = virtual_contexts().of(handle);
    if (!meaning.context) return meaning.real || !handle ? call() : CUDA_ERROR_INVALID_CONTEXT;
    // A primary one isn't ended in this way, nor one that has ended.
    return meaning.context->primary() || !meaning.real ? CUDA_ERROR_INVALID_CONTEXT : destroy(*meaning.context);
}

CUresult set(CUcontext handle) {
    const VirtualContexts::Meaning meaning = virtual_contexts().of(handle);
    return meaning.real || !handle ? CurrentVirtual::set(meaning) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult push(CUcontext handle) {
    const VirtualContexts::Meaning meaning = virtual_contexts().of(handle);
    return meaning.real || !handle ? CurrentVirtual::push(meaning) : CUDA_ERROR_INVALID_CONTEXT;
}

// The same of a named context as of the current one, which no name stands for.
VirtualContexts::Meaning named(CUcontext handle) {
    return handle ? virtual_contexts().of(handle) : CurrentVirtual::get();
}

}  // namespace

namespace split_driver {

CUresult cuCtxCreate(CUcontext* context, unsigned flags, CUdevice device) {
    const CUresult result =
        create(context, flags, device, [&] { return CUSLICE_PHYSICAL(cuCtxCreate)(context, flags, device); });
    constexpr unsigned kFirstForm = 3010;
    VirtualContext* made = result == CUDA_SUCCESS ? virtual_contexts().find(*context) : nullptr;
    if (made) made->version = kFirstForm;
    return result;
}

CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
    return create(context, flags, device, [&] { return CUSLICE_PHYSICAL(cuCtxCreate_v2)(context, flags, device); });
}

// A share of the multiprocessors, or of another API's queues, can't be had in a context that others share.
CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* parameters, int count, unsigned flags,
                        CUdevice device) {
    if (split().is_open() && (count < 0 || (count && !parameters))) return CUDA_ERROR_INVALID_VALUE;
    if (split().is_open() && count) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return create(context, flags, device,
                  [&] { return CUSLICE_PHYSICAL(cuCtxCreate_v3)(context, parameters, count, flags, device); });
}

CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* parameters, unsigned flags, CUdevice device) {
    if (split().is_open() && parameters && parameters->numExecAffinityParams > 0)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    if (split().is_open() && parameters && parameters->cigParams) return CUDA_ERROR_NOT_SUPPORTED;
    return create(context, flags, device,
                  [&] { return CUSLICE_PHYSICAL(cuCtxCreate_v4)(context, parameters, flags, device); });
}

CUresult cuCtxDestroy(CUcontext context) {
    return destroy(context, [&] { return CUSLICE_PHYSICAL(cuCtxDestroy)(context); });
}

CUresult cuCtxDestroy_v2(CUcontext context) {
    return destroy(context, [&] { return CUSLICE_PHYSICAL(cuCtxDestroy_v2)(context); });
}

CUresult cuCtxAttach(CUcontext* handle, unsigned flags) {
    const VirtualContexts::Meaning now = CurrentVirtual::get();
    if (!now.context || now.context->primary() || !handle) {
        const CUresult result = CUSLICE_PHYSICAL(cuCtxAttach)(handle, flags);
        if (result == CUDA_SUCCESS) *handle = CurrentVirtual::handle();
        return result;
    }
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    virtual_contexts().use(*now.context);
    *handle = now.context->handle();
    return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext handle) {
    const VirtualContexts::Meaning meaning = virtual_contexts().of(handle);
    if (!meaning.context || meaning.context->primary()) return CUSLICE_PHYSICAL(cuCtxDetach)(meaning.real);
    // Only of the one that is current.
    if (!meaning.real || CurrentVirtual::get().context != meaning.context) return CUDA_ERROR_INVALID_CONTEXT;
    return virtual_contexts().give_up(*meaning.context) ? CUDA_SUCCESS : destroy(*meaning.context);
}

CUresult cuCtxSetCurrent(CUcontext context) { return set(context); }
CUresult cuCtxPushCurrent(CUcontext context) { return push(context); }
CUresult cuCtxPushCurrent_v2(CUcontext context) { return push(context); }
CUresult cuCtxPopCurrent(CUcontext* context) { return CurrentVirtual::pop(context); }
CUresult cuCtxPopCurrent_v2(CUcontext* context) { return CurrentVirtual::pop(context); }

CUresult cuCtxGetCurrent(CUcontext* context) {
    const CUresult result = CUSLICE_PHYSICAL(cuCtxGetCurrent)(context);
    if (result == CUDA_SUCCESS && *context) *context = CurrentVirtual::handle();
    return result;
}

CUresult cuCtxGetDevice(CUdevice* device) {
    const CUresult result = CUSLICE_PHYSICAL(cuCtxGetDevice)(device);
    if (result == CUDA_SUCCESS) *device = CurrentVirtual::device();
    return result;
}

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext handle) {
    const VirtualContexts::Meaning meaning = named(handle);
    if (handle && !meaning.real) return CUDA_ERROR_INVALID_CONTEXT;
    const CUresult result = CUSLICE_PHYSICAL(cuCtxGetDevice_v2)(device, meaning.real);
    if (result != CUDA_SUCCESS) return result;
    const HandleOwner green = handle_registry().find(meaning.real, HandleKind::green_context);
    *device = meaning.context ? int{meaning.context->device} : green.known ? green.device : split().first_of(*device);
    return result;
}

CUresult cuCtxGetFlags(unsigned* flags) {
    const CUresult result = CUSLICE_PHYSICAL(cuCtxGetFlags)(flags);
    const VirtualContexts::Meaning now = CurrentVirtual::get();
    // How a thread waits is each context's own; the others are the real one's too.
    if (result == CUDA_SUCCESS && now.context)
        *flags = (*flags & ~static_cast<unsigned>(CU_CTX_SCHED_MASK)) | now.context->flags;
    return result;
}

CUresult cuCtxSetFlags(unsigned flags) {
    const CUresult result = CUSLICE_PHYSICAL(cuCtxSetFlags)(flags);
    const VirtualContexts::Meaning now = CurrentVirtual::get();
    if (result == CUDA_SUCCESS && now.context) now.context->flags = flags;
    return result;
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned* version) {
    const VirtualContexts::Meaning meaning = named(handle);
    if (handle && !meaning.real) return CUDA_ERROR_INVALID_CONTEXT;
    const CUresult result = CUSLICE_PHYSICAL(cuCtxGetApiVersion)(meaning.real, version);
    if (result == CUDA_SUCCESS && meaning.context && meaning.context->version) *version = meaning.context->version;
    return result;
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long* id) {
    const VirtualContexts::Meaning meaning = named(handle);
    if (handle && !meaning.real) return CUDA_ERROR_INVALID_CONTEXT;
    const CUresult result = CUSLICE_PHYSICAL(cuCtxGetId)(meaning.real, id);
    // Not the real one's, which has numbers from one up, too.
    constexpr std::uint64_t kOurs = 1ull << 63;
    if (result == CUDA_SUCCESS && meaning.context) *id = kOurs | meaning.context->number;
    return result;
}

}  // namespace split_driver

}  // namespace cuslice
