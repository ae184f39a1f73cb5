// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "virtual_gpu/driver/table.h"

namespace cuslice {

// Around calls of cuslice's own, which the program knows nothing of: as long as it lives, no capture forbids this
// thread what may be unsafe in the midst of one (cuMemAlloc, cuMemFree, queries, a pool's figures), and none of it ends
// a capture. docs/results/ has what an H200's driver forbids; waiting for the work of a stream that is captured, or of
// its context, ends the capture in any mode. PyTorch's allocator does the same around its own calls. Drivers before
// CUDA 10.1 have captures of one mode only, and none of this.
class RelaxedCaptures {
  public:
    RelaxedCaptures() { exchanged_ = possible() && exchange(); }
    ~RelaxedCaptures() {
        if (exchanged_)
            exchange();
    }
    RelaxedCaptures(const RelaxedCaptures&) = delete;
    RelaxedCaptures& operator=(const RelaxedCaptures&) = delete;

    // False: this driver has captures of one mode only.
    explicit operator bool() const { return exchanged_; }
    // True if the driver has modes to relax.
    static bool possible() { return driver_slot(Function::cuThreadExchangeStreamCaptureMode); }

  private:
    bool exchange() { return CUSLICE_REAL(cuThreadExchangeStreamCaptureMode)(&mode_) == CUDA_SUCCESS; }

    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;  // and then the thread's own
    bool exchanged_ = false;
};

// Within RelaxedCaptures: waits for all work on the current context's GPU, and ends no capture by that. A free of the
// driver's waits (docs/results/), here that of a block which is there for nothing else. Not charged: a context's
// headroom has room for it. CUDA_ERROR_OUT_OF_MEMORY where there is no room for the block.
inline CUresult wait_by_free() {
    CUdeviceptr block = 0;
    const CUresult made = CUSLICE_REAL(cuMemAlloc_v2)(&block, 1);
    return made == CUDA_SUCCESS ? CUSLICE_REAL(cuMemFree_v2)(block) : made;
}

}  // namespace cuslice
