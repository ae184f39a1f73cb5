// SPDX-License-Identifier: Apache-2.0
// Primary contexts: made at the first use of several, and ended with the last.
#include <optional>

#include "shim/driver/counted_context.h"
#include "shim/driver/export.h"
#include "virtual_gpu/gpu/pushed_context.h"
#include "virtual_gpu/split/context_lifetime.h"

namespace cuslice {

namespace {

// Somebody else had made it; if no hook saw that, it is measured while it is current.
void know_retained(VirtualGpu& gpu, CUcontext context) {
    if (gpu_state().contexts.known_id(context))
        return;
    PushedContext during;
    during.push(context);
    process().know_context(&gpu, context, gpu.device());
}

template <typename Release>
CUresult release(Release release_primary, CUdevice device) {
    const HookEntry entry;
    return counted_release(gpu_if(entry.counts(), device), [&] { return release_primary(device); });
}

template <typename Reset>
CUresult counted_reset(Reset reset, CUdevice device) {
    const HookEntry entry;
    const auto call = [&] { return reset(device); };
    VirtualGpu* gpu = gpu_if(entry.counts(), device);
    // Retains outlive a reset: the context is made anew at its next use.
    return gpu ? counted_end(gpu, gpu->primary().handle.load(), &gpu->primary(), call) : call();
}

}  // namespace

CUSLICE_HOOK(cuDevicePrimaryCtxRetain, context, device) {
    const HookEntry entry;
    VirtualGpu* gpu = process().gpu_of(device);
    if (const CUresult refused = join_others(gpu_if(entry.counts(), device)); refused != CUDA_SUCCESS)
        return refused;
    unsigned flags = 0;
    int active = 0;
    CUSLICE_REAL(cuDevicePrimaryCtxGetState)(device, &flags, &active);
    if (entry.counts() && gpu && !active)
        process().look_for_ended(*gpu);
    // Current while it is measured: without NVML, the free memory can only be asked of a current context.
    CUcontext retained = nullptr;
    PushedContext measured;
    const auto call = [&] {
        // An end that is under way may be forgotten only after the driver has made the context anew.
        const std::optional<Visit> no_end = gpu ? std::optional<Visit>(std::in_place, &gpu->primary()) : std::nullopt;
        const CUresult result = CUSLICE_REAL(cuDevicePrimaryCtxRetain)(context ? &retained : nullptr, device);
        if (result == CUDA_SUCCESS && !active)
            measured.push(retained);
        return result;
    };
    VirtualGpu* const its = entry.counts() && !active ? gpu : nullptr;
    const CUresult result =
        counted_first_context(Function::cuDevicePrimaryCtxRetain, its, kind_of_context(its, flags), call, [&] {
            measured.pop();
            CUSLICE_REAL(cuDevicePrimaryCtxRelease_v2)(device);
            const LeftMemory none;
        });
    measured.pop();
    if (result == CUDA_SUCCESS)
        *context = retained;
    if (result != CUDA_SUCCESS || !gpu)
        return result;
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

CUSLICE_HOOK_FORM(cuDevicePrimaryCtxRelease, release, device)
CUSLICE_HOOK_FORM(cuDevicePrimaryCtxRelease_v2, release, device)
CUSLICE_HOOK_FORM(cuDevicePrimaryCtxReset, counted_reset, device)
CUSLICE_HOOK_FORM(cuDevicePrimaryCtxReset_v2, counted_reset, device)

}  // namespace cuslice
