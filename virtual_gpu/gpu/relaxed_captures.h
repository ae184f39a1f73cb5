#pragma once
#include "virtual_gpu/driver/table.h"

namespace cuslice {

// Around calls of cuslice's own, which the program knows nothing of: as long as it lives, no capture forbids this
// thread what may be unsafe in the midst of one (cuMemAlloc, cuMemFree, queries, a pool's figures; all of what an
// H200's driver refuses is in docs/hardware/), and nothing of it ends a capture. Work that is waited for does all the
// same. PyTorch's allocator does the same around its own. Drivers before CUDA 10.1 have captures of one mode only, and
// none of this.
class RelaxedCaptures {
  public:
    RelaxedCaptures() { exchanged_ = driver_slot(Function::cuThreadExchangeStreamCaptureMode) && exchange(); }
    ~RelaxedCaptures() {
        if (exchanged_) exchange();
    }
    RelaxedCaptures(const RelaxedCaptures&) = delete;
    RelaxedCaptures& operator=(const RelaxedCaptures&) = delete;

  private:
    bool exchange() { return CUSLICE_REAL(cuThreadExchangeStreamCaptureMode)(&mode_) == CUDA_SUCCESS; }

    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;  // and then the thread's own
    bool exchanged_ = false;
};

}  // namespace cuslice
