#pragma once
#include "virtual_gpu/cache/capture_tracker.h"
#include "virtual_gpu/cache/fences.h"
#include "virtual_gpu/cache/reach.h"

namespace cuslice {

// Whether the GPUs are through with all work that can touch a block: by waiting for it, or by a fence that is asked
// later. Thread-safe.
class Quiescence {
  public:
    // Waits for all work that can touch the memory of a context, unless a stream is being captured. See
    // Backing::quiesce.
    int quiesce(CUcontext context, CUdeviceptr address, bool for_program);
    // CUDA_SUCCESS if a context is current in this thread, else the status for a free in none.
    static int in_context();
    // The same without waiting.
    Fence fence(CUcontext context, CUdeviceptr address);
    // See Backing::passed. Not while a stream is being captured.
    bool passed(Fence fence, bool wait) {
        return !(wait ? captures.any_for_sure() : captures.any()) && fences.passed(fence, wait);
    }

    Fences fences;
    CaptureTracker captures;
    Reach reach;
};

}  // namespace cuslice
