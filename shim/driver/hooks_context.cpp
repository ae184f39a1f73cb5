// Contexts: each takes memory that no allocation asks for, and its end frees every allocation in it.
#include <optional>

#include "shim/driver/counted_context.h"
#include "shim/driver/export.h"
#include "virtual_gpu/gpu/pushed_context.h"
#include "virtual_gpu/gpu/visit.h"

namespace cuslice {

namespace {

// `call` is given where the driver puts the context. The program's own place is written when it is to be had.
template <typename Call>
CUresult counted_create(Function function, CUcontext* context, CUdevice device, Call call) {
    const HookEntry entry;
    VirtualGpu* gpu = gpu_if(entry.counts(), device);
    if (const CUresult refused = join_others(gpu); refused != CUDA_SUCCESS) return refused;
    CUcontext made = nullptr;
    const MakingContext making;
    const CUresult result = counted_step(
        function, gpu, [&] { return call(context ? &made : nullptr); },
        [&] {
            CUSLICE_REAL(cuCtxDestroy_v2)(made);
            const LeftMemory none;
        });
    if (result != CUDA_SUCCESS) return result;
    *context = made;
    const Contexts::Id id = gpu_state().contexts.id_of(made, device);
    process().forget_contexts();
    if (VirtualGpu* its = process().gpu_of(device)) new_context(*its, made, id);
    return result;
}

template <typename Call>
CUresult counted_destroy(CUcontext context, Call call) {
    const HookEntry entry;
    VirtualGpu* gpu = gpu_if(entry.counts(), gpu_state().contexts.device_of(context));
    if (!gpu_state().contexts.is_name(context)) return counted_end(gpu, context, nullptr, call);
    // A green context's: what a driver makes of that is not documented, but the allocations are the primary context's.
    const ContextEnd end(context);
    const CUresult result = call();
    if (result == CUDA_SUCCESS && gpu) gpu->driver_gave_back();
    return result;
}

// Somebody else had made it; if no hook saw that, it is measured while it is current.
void know_retained(VirtualGpu& gpu, CUcontext context) {
    if (gpu_state().contexts.known_id(context)) return;
    PushedContext during;
    during.push(context);
    process().know_context(&gpu, context, gpu.device());
}

template <typename Call>
CUresult counted_reset(CUdevice device, Call call) {
    const HookEntry entry;
    VirtualGpu* gpu = gpu_if(entry.counts(), device);
    // Retains outlive a reset: the context is made anew at its next use.
    return gpu ? counted_end(gpu, gpu->primary().handle.load(), &gpu->primary(), call) : call();
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
                          [&](CUcontext* made) { return CUSLICE_REAL(cuCtxCreate)(made, flags, device); });
}

CUSLICE_HOOK cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_create(Function::cuCtxCreate_v2, context, device,
                          [&](CUcontext* made) { return CUSLICE_REAL(cuCtxCreate_v2)(made, flags, device); });
}

CUSLICE_HOOK cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* parameters, int count, unsigned flags,
                            CUdevice device) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_create(Function::cuCtxCreate_v3, context, device, [&](CUcontext* made) {
        return CUSLICE_REAL(cuCtxCreate_v3)(made, parameters, count, flags, device);
    });
}

CUSLICE_HOOK cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* parameters, unsigned flags, CUdevice device) {
    if (ready() != Readiness::ready) return unavailable();
    return counted_create(Function::cuCtxCreate_v4, context, device, [&](CUcontext* made) {
        return CUSLICE_REAL(cuCtxCreate_v4)(made, parameters, flags, device);
    });
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
    if (result == CUDA_SUCCESS) gpu_state().contexts.attached(*context);
    return result;
}

CUSLICE_HOOK cuCtxDetach(CUcontext context) {
    if (ready() != Readiness::ready) return unavailable();
    const auto call = [&] { return CUSLICE_REAL(cuCtxDetach)(context); };
    if (gpu_state().contexts.last_use(context)) return counted_destroy(context, call);
    const CUresult result = call();
    if (result == CUDA_SUCCESS) gpu_state().contexts.detached(context);
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
    CUcontext retained = nullptr;
    PushedContext measured;
    const auto call = [&] {
        // An end that is under way may be forgotten only after the driver has made the context anew.
        const std::optional<Visit> no_end = gpu ? std::optional<Visit>(std::in_place, &gpu->primary()) : std::nullopt;
        const CUresult result = CUSLICE_REAL(cuDevicePrimaryCtxRetain)(context ? &retained : nullptr, device);
        if (result == CUDA_SUCCESS && !active) measured.push(retained);
        return result;
    };
    const CUresult result =
        counted_step(Function::cuDevicePrimaryCtxRetain, entry.counts() && !active ? gpu : nullptr, call, [&] {
            measured.pop();
            CUSLICE_REAL(cuDevicePrimaryCtxRelease_v2)(device);
            const LeftMemory none;
        });
    measured.pop();
    if (result == CUDA_SUCCESS) *context = retained;
    if (result != CUDA_SUCCESS || !gpu) return result;
    gpu->primary().retains++;
    gpu->primary().is(retained);
    if (active) {
        know_retained(*gpu, retained);
        return result;
    }
    const Contexts::Id id = gpu_state().contexts.id_of(retained, device);
    process().forget_contexts();
    new_context(*gpu, retained, id);
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
