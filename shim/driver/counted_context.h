// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by the hooks of contexts: takes a place among those who share the GPU before a context is made, and releases
// what ends with it.
#include <algorithm>

#include "shim/driver/counted.h"
#include "shim/driver/holdings.h"
#include "shim/driver/recorded.h"
#include "shim/process/ending_context.h"
#include "virtual_gpu/driver/scratch.h"
#include "virtual_gpu/gpu/context_kind.h"
#include "virtual_gpu/gpu/visit.h"

namespace cuslice {

// One whose release is undone too if the hook is left by a longjmp (left_hook.cpp).
class HookEndingContext : public EndingContext {
  public:
    HookEndingContext(VirtualGpu* gpu, CUcontext context) : EndingContext(process(), gpu, context) {
        if (gpu && gpu->limited())
            hook_frame.reserving = &gpu->budget();
    }
    ~HookEndingContext() { hook_frame.reserving = nullptr; }
};

// A call that ends a context: what was in it and what it took itself are given back. `gpu` and `context` may be null,
// when we know nothing of it; `primary`, if it isn't the primary one.
template <typename Call>
CUresult counted_end(VirtualGpu* gpu, CUcontext context, const PrimaryContext* primary, Call call) {
    const bool counts = gpu && gpu->limited();
    DriverFootprint::Step step;
    if (counts)
        step = DriverSteps(*gpu).before();
    CUresult result;
    {
        const ContextEnd end(context), no_retain(primary);
        if (counts)
            note_holdings();
        HookEndingContext ending(gpu, context);
        result = recorded_end(context, call);
        result == CUDA_SUCCESS ? ending.ended() : ending.lives_on();
    }
    if (result == CUDA_SUCCESS && counts)
        DriverSteps(*gpu).after_context_end(step);
    return result;
}

inline VirtualGpu* gpu_if(bool counts, CUdevice device) { return counts ? process().gpu_of(device) : nullptr; }

inline bool shares(const VirtualGpu* gpu) { return gpu && gpu->limited() && gpu_state().sharing.any(); }

// Before a context: the slice may have to be reserved first, among everybody's on this host.
inline CUresult join_others(VirtualGpu* gpu) {
    if (!shares(gpu))
        return CUDA_SUCCESS;
    const Scratch<Refusal> refusal;
    if (!refusal)
        return CUDA_ERROR_OUT_OF_MEMORY;
    gpu->join(&*refusal);
    return answer_place(*gpu, *refusal);
}

// How a context with these flags would be made; 0 where its size isn't looked up.
inline uint64_t kind_of_context(const VirtualGpu* gpu, unsigned flags) {
    if (!shares(gpu))
        return 0;
    int version = 0;
    CUSLICE_REAL(cuDriverGetVersion)(&version);
    return context_kind(gpu_state().sharing.context_kind, flags, version);
}

// The shape of every call that makes a context. One that is known not to fit is never made.
template <typename Call, typename Undo>
CUresult counted_first_context(Function function, VirtualGpu* gpu, uint64_t kind, Call call, Undo undo) {
    const CUresult result = counted_step(function, gpu, call, undo, kind ? DriverSteps(*gpu).known_context(kind) : 0);
    if (result == CUDA_SUCCESS && kind)
        DriverSteps(*gpu).note_context(kind);
    return result;
}

// One use of the primary context less, unless it may be the last. The driver has heard of it before anybody else's last
// one.
template <typename Call>
bool released_one_of_several(PrimaryContext& primary, Call call, CUresult* result) {
    const Visit no_end(&primary);
    unsigned retains = primary.retains.load();
    do {
        if (retains <= 1)
            return false;
    } while (!primary.retains.compare_exchange_weak(retains, retains - 1));
    *result = call();
    if (*result != CUDA_SUCCESS)
        primary.retains++;
    return true;
}

// Gives up one use of the primary context. Whether that ends it is asked of the driver afterwards: NVIDIA's runtime may
// retain it where no hook is.
template <typename Call>
CUresult counted_release(VirtualGpu* gpu, Call call) {
    if (!gpu)
        return call();
    PrimaryContext& primary = gpu->primary();
    CUresult result = CUDA_SUCCESS;
    if (released_one_of_several(primary, call, &result))
        return result;
    const bool counts = gpu->limited();
    DriverFootprint::Step step;
    if (counts)
        step = DriverSteps(*gpu).before();
    if (counts)
        gpu->budget().begin_release();
    hook_frame.reserving = counts ? &gpu->budget() : nullptr;
    bool ended = false;
    {
        const CUcontext context = primary.handle.load();
        const ContextEnd end(context), no_retain(&primary);
        const unsigned retains = primary.retains.load();
        result = call();
        ended = result == CUDA_SUCCESS && !primary_is_active(gpu->device());
        if (ended) {
            recorded_end(context, [] { return CUDA_SUCCESS; });
            process().forget_context(gpu, context);
        }
        if (result == CUDA_SUCCESS)
            primary.retains.store(ended ? 0 : std::max(1u, retains) - 1);
    }
    hook_frame.reserving = nullptr;
    if (counts)
        gpu->budget().cancel_release();
    if (counts && ended)
        DriverSteps(*gpu).after_context_end(step);
    return result;
}

// Logs a new context and prepares its cache.
void new_context(VirtualGpu& gpu, CUcontext context, Contexts::Id id, CacheOfUnseen cache = CacheOfUnseen::prepared);

}  // namespace cuslice
