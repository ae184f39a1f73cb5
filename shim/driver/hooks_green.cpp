// Green contexts: each retains the device's primary context, whose memory is theirs too, and takes what the driver
// needs for it.
#include "shim/driver/counted_context.h"
#include "shim/driver/export.h"

namespace cuslice {

namespace {

CUcontext context_of(CUgreenCtx green) {
    CUcontext context = nullptr;
    return CUSLICE_REAL(cuCtxFromGreenCtx)(&context, green) == CUDA_SUCCESS ? context : nullptr;
}

}  // namespace

CUSLICE_HOOK cuGreenCtxCreate(CUgreenCtx* green, CUdevResourceDesc resources, CUdevice device, unsigned flags) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    VirtualGpu* gpu = gpu_if(entry.counts(), device);
    if (!gpu) return CUSLICE_REAL(cuGreenCtxCreate)(green, resources, device, flags);
    if (const CUresult refused = join_others(gpu); refused != CUDA_SUCCESS) return refused;
    // Current while it is measured: without NVML, the free memory can only be asked of a current context.
    CUcontext context = nullptr, popped = nullptr;
    bool pushed = false;
    const auto call = [&] {
        const CUresult created = CUSLICE_REAL(cuGreenCtxCreate)(green, resources, device, flags);
        if (created == CUDA_SUCCESS && (context = context_of(*green)))
            pushed = CUSLICE_REAL(cuCtxPushCurrent_v2)(context) == CUDA_SUCCESS;
        return created;
    };
    const auto pop = [&] {
        if (pushed) CUSLICE_REAL(cuCtxPopCurrent_v2)(&popped);
        pushed = false;
    };
    const CUresult result = counted_step(Function::cuGreenCtxCreate, gpu, call, [&] {
        pop();
        CUSLICE_REAL(cuGreenCtxDestroy)(*green);
    });
    pop();
    if (result != CUDA_SUCCESS) return result;
    const CUcontext primary = active_primary(device);
    gpu->primary().retains++;
    gpu->primary().is(primary);
    process().contexts().id_of(primary, device);
    if (context != primary) process().contexts().add_name(context, primary, device);
    process().forget_contexts();
    introduce(*gpu, primary);
    return result;
}

// The last use of the primary context ends it, with every allocation in it, whoever made them; else what the green
// context took itself is given back.
CUSLICE_HOOK cuGreenCtxDestroy(CUgreenCtx green) {
    if (ready() != Readiness::ready) return unavailable();
    const HookEntry entry;
    const CUcontext context = entry.counts() ? context_of(green) : nullptr;
    VirtualGpu* gpu = gpu_if(entry.counts(), process().contexts().device_of(context));
    const bool last = gpu && gpu->primary().retains.load() <= 1;
    DriverPart::Step step;
    if (gpu && gpu->limited() && !last) step = gpu->before_driver_step();
    const CUresult result = counted_release(gpu, [&] { return CUSLICE_REAL(cuGreenCtxDestroy)(green); });
    if (result != CUDA_SUCCESS || !gpu) return result;
    if (gpu->limited() && !last) gpu->after_driver_step(step, nullptr);
    process().contexts().name_ended(context);
    process().forget_contexts();
    return result;
}

}  // namespace cuslice
