// SPDX-License-Identifier: Apache-2.0
// Tracks the current context and its GPU, and catches contexts whose beginning or end no hook has seen.
#include "policy/base/cancellation.h"
#include "shim/process/ending_context.h"
#include "shim/process/process.h"
#include "virtual_gpu/gpu/driver_steps.h"
#include "virtual_gpu/gpu/pushed_context.h"
#include "virtual_gpu/gpu/visit.h"
#include "virtual_gpu/split/physical.h"
#include "virtual_gpu/split/split.h"

namespace cuslice {

constinit thread_local Process::LastContext Process::last_context{};

// The folders below ask the process through these.
void Process::connect() {
    GpuState& state = gpu_state();
    state.reclaimer = &caches_;
    state.start_nvml = [] { return process().start_nvml(); };
    state.look_for_ended = [](VirtualGpu& gpu) { process().look_for_ended(gpu); };
    state.charge_unseen = [](VirtualGpu& gpu, CacheOfUnseen cache) {
        return process().charge_unseen(gpu, false, cache);
    };
    split().find_owner = [](CUdeviceptr base, int* gpu, CUcontext* context) {
        const Allocation known = gpu_state().allocations.find(base);
        if (!known.address)
            return false;
        *gpu = known.gpu;
        *context = gpu_state().contexts.handle_of(known.context);
        return true;
    };
}

const Process::Current& Process::look_up(CUcontext now) {
    LastContext& last = last_context;
    const uint32_t epoch = context_epoch_.load(std::memory_order_acquire);
    CUdevice device = -1;
    last = {};
    if (!now || CUSLICE_REAL(cuCtxGetDevice)(&device) != CUDA_SUCCESS)
        return last.current;
    VirtualGpu* gpu = gpu_of(device);
    const Contexts::Id id = know_context(gpu, now, device);
    last = {now, {gpu, id, gpu && caches_anything() ? caches_.of(*gpu, id) : nullptr}, epoch};
    return last.current;
}

// Measured before it is known: another thread that meets it at the same time measures it as well, and neither is
// granted a byte on the strength of a figure that leaves it out.
Contexts::Id Process::know_context(VirtualGpu* gpu, CUcontext context, CUdevice device, CacheOfUnseen cache) {
    Contexts& contexts = gpu_state().contexts;
    if (const Contexts::Id id = contexts.known_id(context))
        return id;
    if (!gpu || !gpu->limited()) {
        const Contexts::Id id = contexts.id_of(context, device);
        if (gpu)
            turns_.use(*gpu);
        return id;
    }
    const DisableCancellation uncancelled;
    const MakingContext making;
    DriverSteps(*gpu).charge_unseen_context();
    const Contexts::Id id = contexts.id_of(context, device);
    if (active_primary(device) == context)
        gpu->primary().is(context);
    if (on_new_context)
        on_new_context(*gpu, context, id, cache);
    return id;
}

bool Process::know_primary(VirtualGpu& gpu, CacheOfUnseen cache) {
    const CUcontext context = active_primary(gpu.device());
    if (!context)
        return false;
    if (gpu_state().contexts.known_id(context))
        return true;
    PushedContext measured;  // without NVML the free memory can only be asked of a current context
    measured.push(context);
    know_context(&gpu, context, gpu.device(), cache);
    return true;
}

namespace {

// Partitions have handles of their own, by which the real context becomes known when it is current.
bool charge_unseen_of_all(VirtualGpu& gpu) {
    const Split::Device* const part = split().device(gpu.device());
    CUcontext context = nullptr;
    if (!part || !physical_primary_is_active(gpu.device()))
        return false;
    if (gpu.measured())
        return true;
    if (CUSLICE_PHYSICAL(cuDevicePrimaryCtxRetain)(&context, part->physical) != CUDA_SUCCESS)
        return false;
    const bool pushed = CUSLICE_PHYSICAL(cuCtxPushCurrent_v2)(context) == CUDA_SUCCESS;
    DriverSteps(gpu).charge_unseen_context();
    if (pushed)
        CUSLICE_PHYSICAL(cuCtxPopCurrent_v2)(&context);
    CUSLICE_PHYSICAL(cuDevicePrimaryCtxRelease_v2)(part->physical);
    return true;
}

}  // namespace

bool Process::charge_unseen(VirtualGpu& gpu, bool beside, CacheOfUnseen cache) {
    Contexts& contexts = gpu_state().contexts;
    if (gpu.physical().is_split()) {
        bool any = false;
        for (const VirtualGpu* part : gpu.physical().parts())
            any = any || contexts.any_on(part->device());
        return any || charge_unseen_of_all(gpu);
    }
    const bool any = contexts.any_on(gpu.device());
    const CUcontext primary = gpu.primary().handle.load();
    const bool is_known = beside ? primary && contexts.known_id(primary) : any;
    return (!is_known && know_primary(gpu, cache)) || any;
}

void Process::look_for_ended(VirtualGpu& gpu) {
    const CUcontext primary = gpu.primary().handle.load();
    const auto has_ended = [&] {
        return primary && gpu_state().contexts.known_id(primary) &&
               (!physical_primary_is_active(gpu.device()) || gpu.primary().is_another());
    };
    if (!has_ended())
        return;
    const ContextEnd end(primary), no_retain(&gpu.primary());
    if (has_ended())
        forget_context(&gpu, primary);
}

void Process::forget_context(VirtualGpu* gpu, CUcontext context) { EndingContext(*this, gpu, context).ended(); }

}  // namespace cuslice
