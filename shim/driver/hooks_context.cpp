// Contexts: each takes memory that no allocation asks for, and its end frees every allocation in it.
#include "shim/driver/counted_context.h"
#include "shim/driver/export.h"

namespace cuslice {

namespace {

template <typename Call>
CUresult counted_create(Function function, CUcontext* context, CUdevice device, Call call) {
    const HookEntry entry;
    if (const CUresult refused = join_others(gpu_if(entry.counts(), device)); refused != CUDA_SUCCESS) return refused;
    const CUresult result = counted_step(function, gpu_if(entry.counts(), device), call, [&] {
        CUSLICE_REAL(cuCtxDestroy_v2)(*context);
        const LeftMemory none;
    });
    if (result != CUDA_SUCCESS) return result;
    const Contexts::Id id = process().contexts().id_of(*context, device);
    process().forget_contexts();
    if (VirtualGpu* gpu = process().gpu_of(device)) new_context(*gpu, *context, id);
    return result;
}

template <typename Call>
CUresult counted_destroy(CUcontext context, Call call) {
    const HookEntry entry;
    VirtualGpu* gpu = gpu_if(entry.counts(), process().contexts().device_of(context));
    if (!process().contexts().is_name(context)) return counted_end(gpu, context, call);
    // A green context's: what a driver makes of that is not documented, but the allocations are the primary context's.
    const CUresult result = call();
    if (result == CUDA_SUCCESS && gpu) gpu->driver_gave_back();
    return result;
}

// Somebody else had made it; if no hook saw that, it is measured while it is current.
void know_retained(VirtualGpu& gpu, CUcontext context) {
    if (process().contexts().known_id(context)) return;
    CUcontext popped = nullptr;
    const bool pushed = CUSLICE_REAL(cuCtxPushCurrent_v2)(context) == CUDA_SUCCESS;
    process().know_context(&gpu, context, gpu.device());
    if (pushed) CUSLICE_REAL(cuCtxPopCurrent_v2)(&popped);
}

template <typename Call>
CUresult counted_reset(CUdevice device, Call call) {
    const HookEntry entry;
    VirtualGpu* gpu = gpu_if(entry.counts(), device);
    // Retains outlive a reset: the context is made anew at its next use.
    return gpu ? counted_end(gpu, gpu->primary().handle.load(), call) : call();
}

}  // namespace

// The slice's memory is taken now, where it is to be taken at once.
void new_context(VirtualGpu& gpu, CUcontext context, Contexts::Id id) {
    introduce(gpu, context);
    if (!gpu.caches()) return;
    std::uint64_t missing = 0;
    if (!process().caches().prepare(gpu, id, &missing)) report_missing(gpu, missing);
    report_unpublished();
}

CUSLICE_HOOK cuCtxCreate(CUcontext* context, unsigned flags, CUdevice device) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_create(Function::cuCtxCreate, context, device,
                          [&] { return CUSLICE_REAL(cuCtxCreate)(context, flags, device); });
}

CUSLICE_HOOK cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_create(Function::cuCtxCreate_v2, context, device,
                          [&] { return CUSLICE_REAL(cuCtxCreate_v2)(context, flags, device); });
}

CUSLICE_HOOK cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* parameters, int count, unsigned flags,
                            CUdevice device) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_create(Function::cuCtxCreate_v3, context, device,
                          [&] { return CUSLICE_REAL(cuCtxCreate_v3)(context, parameters, count, flags, device); });
}

CUSLICE_HOOK cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* parameters, unsigned flags, CUdevice device) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_create(Function::cuCtxCreate_v4, context, device,
                          [&] { return CUSLICE_REAL(cuCtxCreate_v4)(context, parameters, flags, device); });
}

CUSLICE_HOOK cuCtxDestroy(CUcontext context) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_destroy(context, [&] { return CUSLICE_REAL(cuCtxDestroy)(context); });
}

CUSLICE_HOOK cuCtxDestroy_v2(CUcontext context) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_destroy(context, [&] { return CUSLICE_REAL(cuCtxDestroy_v2)(context); });
}

CUSLICE_HOOK cuCtxAttach(CUcontext* context, unsigned flags) {
    if (ready() != Readiness::ready) return unavailable();
    const CUresult result = CUSLICE_REAL(cuCtxAttach)(context, flags);
    if (result == CUDA_SUCCESS) process().contexts().attached(*context);
    return result;
}

CUSLICE_HOOK cuCtxDetach(CUcontext context) {
    if (ready() != Readiness::ready) return unavailable();
    const auto call = [&] { return CUSLICE_REAL(cuCtxDetach)(context); };
    if (process().contexts().last_use(context)) return counted_destroy(context, call);
    const CUresult result = call();
    if (result == CUDA_SUCCESS) process().contexts().detached(context);
    return result;
}

// Stacks, heaps and print buffers are sized by this, and the driver makes room for them at once or at the next launch.
CUSLICE_HOOK cuCtxSetLimit(CUlimit limit, size_t value) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    size_t before = 0;
    const bool known = CUSLICE_REAL(cuCtxGetLimit)(&before, limit) == CUDA_SUCCESS;
    const bool is_size = limit == CU_LIMIT_MALLOC_HEAP_SIZE || limit == CU_LIMIT_PRINTF_FIFO_SIZE;
    return counted_step(
        Function::cuCtxSetLimit, entry.counts() ? process().current().gpu : nullptr,
        [&] { return CUSLICE_REAL(cuCtxSetLimit)(limit, value); },
        [&] {
            if (known) CUSLICE_REAL(cuCtxSetLimit)(limit, before);
        },
        known && is_size && value > before ? value - before : 0);
}

CUSLICE_HOOK cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    VirtualGpu* gpu = process().gpu_of(device);
    if (const CUresult refused = join_others(gpu_if(entry.counts(), device)); refused != CUDA_SUCCESS) return refused;
    unsigned flags = 0;
    int active = 0;
    CUSLICE_REAL(cuDevicePrimaryCtxGetState)(device, &flags, &active);
    if (entry.counts() && gpu && !active) process().look_for_ended(*gpu);
    // Current while it is measured: without NVML, the free memory can only be asked of a current context.
    bool pushed = false;
    const auto call = [&] {
        const CUresult retained = CUSLICE_REAL(cuDevicePrimaryCtxRetain)(context, device);
        if (retained == CUDA_SUCCESS && !active) pushed = CUSLICE_REAL(cuCtxPushCurrent_v2)(*context) == CUDA_SUCCESS;
        return retained;
    };
    const CUresult result =
        counted_step(Function::cuDevicePrimaryCtxRetain, entry.counts() && !active ? gpu : nullptr, call, [&] {
            CUSLICE_REAL(cuDevicePrimaryCtxRelease_v2)(device);
            const LeftMemory none;
        });
    CUcontext popped = nullptr;
    if (pushed) CUSLICE_REAL(cuCtxPopCurrent_v2)(&popped);
    if (result != CUDA_SUCCESS || !gpu) return result;
    gpu->primary().retains++;
    gpu->primary().is(*context);
    if (active) {
        know_retained(*gpu, *context);
        return result;
    }
    const Contexts::Id id = process().contexts().id_of(*context, device);
    process().forget_contexts();
    new_context(*gpu, *context, id);
    return result;
}

CUSLICE_HOOK cuDevicePrimaryCtxRelease(CUdevice device) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    return counted_release(gpu_if(entry.counts(), device),
                           [&] { return CUSLICE_REAL(cuDevicePrimaryCtxRelease)(device); });
}

CUSLICE_HOOK cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    return counted_release(gpu_if(entry.counts(), device),
                           [&] { return CUSLICE_REAL(cuDevicePrimaryCtxRelease_v2)(device); });
}

CUSLICE_HOOK cuDevicePrimaryCtxReset(CUdevice device) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_reset(device, [&] { return CUSLICE_REAL(cuDevicePrimaryCtxReset)(device); });
}

CUSLICE_HOOK cuDevicePrimaryCtxReset_v2(CUdevice device) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_reset(device, [&] { return CUSLICE_REAL(cuDevicePrimaryCtxReset_v2)(device); });
}

}  // namespace cuslice
