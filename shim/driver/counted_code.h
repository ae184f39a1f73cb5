// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by the hooks of modules and libraries: code and variables that the driver places on the GPU by itself.
#include "shim/driver/counted.h"
#include "virtual_gpu/gpu/image_size.h"

namespace cuslice {

// `least`: asked for what the code takes at least.
template <typename Load, typename Unload, typename Least, typename Handle, typename Code, typename... Arguments>
CUresult counted_load(Load load, Unload unload, Least least, Handle* handle, Code code, Arguments... arguments) {
    const HookEntry entry;
    VirtualGpu* gpu = entry.counts() ? process().current().gpu : nullptr;
    if (!gpu || !gpu->limited() || !handle)
        return load(handle, code, arguments...);
    Handle loaded = nullptr;
    const CUresult result = counted_step(
        load.function, gpu, [&] { return load(&loaded, code, arguments...); }, [&] { unload(loaded); }, least(code));
    if (result == CUDA_SUCCESS)
        *handle = loaded;
    return result;
}

// Kernels that were looked up before have been launched by now. Where one of them needed more local memory than those
// before it, the driver has taken it at its launch, which no hook sees: a cache makes room for it out of what is idle.
// And what free memory was measured is of before.
inline void look_before_kernel() {
    const HookEntry entry;
    VirtualGpu* gpu = current_gpu(entry);
    if (!gpu || !gpu->limited())
        return;
    if (gpu->caches())
        gpu->poll_cached();
    gpu->driver_gave_back();
}

// True of a limited GPU that is in use: of one of its partitions alone, as one step measures all of them.
inline bool may_be_unloaded_from(VirtualGpu& gpu, const VirtualGpu* current) {
    if (!gpu.limited() || !gpu.measured())
        return false;
    const bool is_current = current && &gpu.physical() == &current->physical();
    return !is_current && gpu.physical().parts().front() == &gpu;
}

// The code to unload may be in another context than the current one. So the call is measured as a step on every GPU
// in use from `ordinal` on: once on a split one, and not on the current one, which the caller measures.
template <typename Call>
CUresult unload_beside(int ordinal, const VirtualGpu* current, const Call& call) {
    for (; ordinal < process().gpu_count(); ordinal++) {
        VirtualGpu& gpu = process().gpu(ordinal);
        if (!may_be_unloaded_from(gpu, current))
            continue;
        if (!gpu.physical().measures_steps()) {
            const CUresult result = unload_beside(ordinal + 1, current, call);
            if (result == CUDA_SUCCESS)
                gpu.driver_gave_back();
            return result;
        }
        DriverFootprint::Step step = DriverSteps(gpu).before();
        const CUresult result = unload_beside(ordinal + 1, current, call);
        if (result == CUDA_SUCCESS)
            DriverSteps(gpu).after(step, nullptr);
        return result;
    }
    return call();
}

inline constexpr auto counted_unload = [](auto unload, auto handle) {
    const auto call = [&] { return unload(handle); };
    const HookEntry entry;
    if (!entry.counts())
        return call();
    VirtualGpu* gpu = process().current().gpu;
    if (!gpu || !gpu->limited())
        return unload_beside(0, nullptr, call);
    DriverFootprint::Step step = DriverSteps(*gpu).before();
    const CUresult result = unload_beside(0, gpu, call);
    if (result == CUDA_SUCCESS)
        DriverSteps(*gpu).after(step, nullptr);
    return result;
};

}  // namespace cuslice
