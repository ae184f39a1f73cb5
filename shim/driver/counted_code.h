// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by the hooks of modules and libraries: code and variables that the driver places on the GPU by itself.
#include <algorithm>
#include <span>

#include "shim/driver/counted.h"
#include "virtual_gpu/gpu/image_size.h"

namespace cuslice {

// `least`: asked for what the code takes at least.
template <typename Load, typename Unload, typename Least, typename Handle, typename Code, typename... Arguments>
CUresult counted_load(Load load, Unload unload, Least least, Handle* handle, Code code, Arguments... arguments) {
    const HookEntry entry;
    VirtualGpu* const gpu = if_limited(current_gpu(entry));
    if (!gpu || !handle)
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
    VirtualGpu* const gpu = if_limited(current_gpu(entry));
    if (!gpu)
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

// A call by which the driver may give memory of this GPU back.
template <typename Call>
CUresult measured_unload(VirtualGpu& gpu, const Call& call) {
    DriverFootprint::Step step = DriverSteps(gpu).before();
    const CUresult result = call();
    if (result == CUDA_SUCCESS)
        DriverSteps(gpu).after(step, nullptr);
    return result;
}

// The code to unload may be in another context than the current one. So the call is measured as a step on every GPU
// in use out of `gpus`: once on a split one, and not on the current one, which the caller measures.
template <typename Call>
CUresult unload_beside(std::span<VirtualGpu> gpus, const VirtualGpu* current, const Call& call) {
    const auto gpu =
        std::find_if(gpus.begin(), gpus.end(), [&](VirtualGpu& other) { return may_be_unloaded_from(other, current); });
    if (gpu == gpus.end())
        return call();
    const auto beside = [&] { return unload_beside({gpu + 1, gpus.end()}, current, call); };
    if (gpu->physical().measures_steps())
        return measured_unload(*gpu, beside);
    const CUresult result = beside();
    if (result == CUDA_SUCCESS)
        gpu->driver_gave_back();
    return result;
}

inline constexpr auto counted_unload = [](auto unload, auto handle) {
    const auto call = [&] { return unload(handle); };
    const HookEntry entry;
    if (!entry.counts())
        return call();
    VirtualGpu* const gpu = if_limited(process().current().gpu);
    const auto beside = [&] { return unload_beside(process().gpus(), gpu, call); };
    return gpu ? measured_unload(*gpu, beside) : beside();
};

}  // namespace cuslice
