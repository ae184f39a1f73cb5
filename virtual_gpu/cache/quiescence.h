// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "virtual_gpu/cache/capture_tracker.h"
#include "virtual_gpu/cache/fences.h"
#include "virtual_gpu/cache/reach.h"

namespace cuslice {

// An answer of the driver's to a call that a stream's capture forbids, or ends by.
constexpr bool is_of_capture(int result) {
    return result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

// Tells when the GPUs are through with all work that can touch a block: by waiting for it, or by a fence that is
// asked later. Thread-safe.
//
// While a stream is captured no context is waited for and no event recorded. If memory is short, they wait all the
// same, by a free: the driver's own waits for all work that can touch what it frees, and ends no capture where the
// thread's mode is relaxed.
class Quiescence {
  public:
    // Waits for all work that can touch the memory of a context. During a capture not `for_program`. See
    // Backing::quiesce.
    int quiesce(CUcontext context, CUdeviceptr address, bool for_program);
    // CUDA_SUCCESS if a context is current in this thread, else the status for a free in none.
    static int in_context();
    // The same without waiting.
    Fence fence(CUcontext context, CUdeviceptr address);
    // See Backing::passed. During a capture only where the driver has modes to relax.
    bool passed(Fence fence, bool wait);
    // The same as Fences::past. During a capture no fence is made.
    bool past(CUcontext context, CUdeviceptr address, Fence* made);

    Fences fences;
    CaptureTracker captures;
    Reach reach;

  private:
    Fence fence_within(const CaptureTracker::Asking& asking, CUcontext context, CUdeviceptr address);
    template <typename May, typename Wait>
    int wait_for_all(const May& may, CUcontext context, CUdeviceptr address, Wait wait);
};

}  // namespace cuslice
