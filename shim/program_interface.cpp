// SPDX-License-Identifier: Apache-2.0
// The functions of include/cuslice.h, for programs that ask or limit themselves.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "include/cuslice.h"
#include "policy/base/cancellation.h"
#include "shim/driver/report.h"
#include "shim/process/process.h"

namespace cuslice {

namespace {

// How large the structure was in the first version.
constexpr size_t kMinSize = offsetof(cuslice_stats, own_memory) + sizeof(cuslice_stats::own_memory);

cuslice_tally tally_of(const Tally& tally) { return {tally.current, tally.peak, tally.allocated, tally.freed}; }

// The GPU that CUDA counts as `device`, or why there is none.
CUresult find_gpu(int device, VirtualGpu** gpu) {
    *gpu = process().gpu_of(device);
    if (*gpu)
        return CUDA_SUCCESS;
    return process().gpu_count() ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_NOT_INITIALIZED;
}

int memory_stats(int device, cuslice_stats* stats) {
    if (!stats || stats->size < kMinSize)
        return CUDA_ERROR_INVALID_VALUE;
    VirtualGpu* gpu = nullptr;
    if (const CUresult missing = find_gpu(device, &gpu); missing != CUDA_SUCCESS)
        return missing;
    if (!gpu->caches() || !process().caches_anything())
        return CUDA_ERROR_NOT_SUPPORTED;
    const DisableCancellation uncancelled;
    const Statistics s = process().caches().statistics(*gpu);
    cuslice_stats all{};
    all.allocated = tally_of(s.allocated);
    all.requested = tally_of(s.requested);
    all.active = tally_of(s.active);
    all.reserved = tally_of(s.reserved);
    all.allocations = s.allocations;
    all.frees = s.frees;
    all.segments = s.segments;
    all.retries = s.retries;
    all.ooms = s.ooms;
    all.syncs = s.syncs;
    all.largest_free = s.largest_free;
    all.own_memory = s.own_memory;
    // A program may have been built with an older structure, or with a newer one.
    all.size = std::min(stats->size, sizeof all);
    std::memcpy(stats, &all, all.size);
    return CUDA_SUCCESS;
}

// Preallocated memory is held already, whatever the program uses of it.
bool can_be_lowered(const VirtualGpu& gpu) { return gpu.limited() && gpu.slice().allocator != AllocatorMode::prealloc; }

int set_slice(int device, uint64_t bytes) {
    if (device < 0 || device >= GpuState::kMaxGpus)
        return CUDA_ERROR_INVALID_VALUE;
    VirtualGpu* gpu = nullptr;
    const CUresult missing = find_gpu(device, &gpu);
    if (missing == CUDA_ERROR_INVALID_DEVICE)
        return missing;
    if (gpu && !can_be_lowered(*gpu))
        return CUDA_ERROR_NOT_SUPPORTED;
    // The GPUs may be opened meanwhile: they are looked for again once the figure is there for them to find.
    gpu_state().lowered_limits[device].set(bytes);
    if (find_gpu(device, &gpu) == CUDA_SUCCESS)
        lower_limit(*gpu, bytes);
    return CUDA_SUCCESS;
}

int get_slice(int device, cuslice_own_slice* slice) {
    if (!slice || slice->size < sizeof *slice)
        return CUDA_ERROR_INVALID_VALUE;
    VirtualGpu* gpu = nullptr;
    if (const CUresult missing = find_gpu(device, &gpu); missing != CUDA_SUCCESS)
        return missing;
    if (!gpu->limited())
        return CUDA_ERROR_NOT_SUPPORTED;
    const DisableCancellation uncancelled;
    *slice = {sizeof *slice, gpu->limit(), gpu->budget().used(), gpu->driver_footprint(), refusals_of(*gpu)};
    return CUDA_SUCCESS;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int cuslice_set_slice(int device, uint64_t bytes) {
    return set_slice(device, bytes);
}

extern "C" __attribute__((visibility("default"))) int cuslice_get_slice(int device, struct cuslice_own_slice* slice) {
    return get_slice(device, slice);
}

extern "C" __attribute__((visibility("default"))) int cuslice_memory_stats(int device, struct cuslice_stats* stats) {
    return memory_stats(device, stats);
}

}  // namespace cuslice
