#pragma once
// What hooks of physical memory, mapped or bound, have in common.
#include "shim/driver/counted.h"

namespace cuslice {

inline PhysicalMemory& physical_memory() { return gpu_state().physical_memory; }

// An allocation of cuMemCreate has ended.
inline void give_back(int gpu, std::uint64_t bytes, bool elsewhere) {
    if (elsewhere) return process().gpu(gpu).release_shared(bytes);
    Budget& budget = process().gpu(gpu).budget();
    budget.begin_release();
    budget.end_release(bytes);
}

// What isn't ours to count may be in the driver's figure: one of another process that has ended, or bound to an
// array.
inline CUresult imported_given_back(CUresult result) {
    if (result == CUDA_SUCCESS)
        if (VirtualGpu* gpu = process().current().gpu) gpu->driver_gave_back();
    return result;
}

}  // namespace cuslice
