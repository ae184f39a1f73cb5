// SPDX-License-Identifier: Apache-2.0
// Green contexts: each retains the device's primary context, whose memory is theirs too, and takes what the driver
// needs for it.
#include "shim/driver/counted_context.h"
#include "shim/driver/export.h"
#include "virtual_gpu/gpu/pushed_context.h"
#include "virtual_gpu/gpu/visit.h"
#include "virtual_gpu/split/context_lifetime.h"

namespace cuslice {

namespace {

CUcontext context_of(CUgreenCtx green) {
    CUcontext context = nullptr;
    return CUSLICE_REAL(cuCtxFromGreenCtx)(&context, green) == CUDA_SUCCESS ? context : nullptr;
}

}  // namespace

CUSLICE_HOOK(cuGreenCtxCreate, green, resources, device, flags) {
    const HookEntry entry;
    VirtualGpu* gpu = gpu_if(entry.counts(), device);
    if (!gpu)
        return CUSLICE_REAL(cuGreenCtxCreate)(green, resources, device, flags);
    if (const CUresult refused = join_others(gpu); refused != CUDA_SUCCESS)
        return refused;
    // Current while it is measured: without NVML, the free memory can only be asked of a current context.
    CUgreenCtx made = nullptr;
    CUcontext context = nullptr;
    PushedContext measured;
    const auto call = [&] {
        const Visit no_end(&gpu->primary());
        const CUresult created = CUSLICE_REAL(cuGreenCtxCreate)(green ? &made : nullptr, resources, device, flags);
        if (created == CUDA_SUCCESS && (context = context_of(made)))
            measured.push(context);
        return created;
    };
    const CUresult result = counted_step(Function::cuGreenCtxCreate, gpu, call, [&] {
        measured.pop();
        CUSLICE_REAL(cuGreenCtxDestroy)(made);
        const LeftMemory none;
    });
    measured.pop();
    if (result != CUDA_SUCCESS)
        return result;
    *green = made;
    const CUcontext primary = active_primary(device);
    gpu->primary().retains++;
    gpu->primary().is(primary);
    Contexts& contexts = gpu_state().contexts;
    contexts.id_of(primary, device);
    if (context != primary)
        contexts.add_name(context, primary, device);
    process().forget_contexts();
    log_slice(*gpu, primary);
    return result;
}

// The last use of the primary context ends it, with every allocation in it, whoever made them; else what the green
// context took itself is given back.
CUSLICE_HOOK(cuGreenCtxDestroy, green) {
    const HookEntry entry;
    const CUcontext context = entry.counts() ? context_of(green) : nullptr;
    Contexts& contexts = gpu_state().contexts;
    VirtualGpu* gpu = gpu_if(entry.counts(), contexts.device_of(context));
    const bool last = gpu && gpu->primary().retains.load() <= 1;
    DriverFootprint::Step step;
    if (gpu && gpu->limited() && !last)
        step = DriverSteps(*gpu).before();
    CUresult result;
    {
        const ContextEnd end(context);
        result = counted_release(gpu, [&] { return CUSLICE_REAL(cuGreenCtxDestroy)(green); });
    }
    if (result != CUDA_SUCCESS || !gpu)
        return result;
    if (gpu->limited() && !last)
        DriverSteps(*gpu).after(step, nullptr);
    contexts.name_ended(context);
    process().forget_contexts();
    return result;
}

}  // namespace cuslice
