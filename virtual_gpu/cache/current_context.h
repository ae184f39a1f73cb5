#pragma once
#include "virtual_gpu/driver/table.h"

namespace cuslice {

// Makes a context current for a while, in whatever thread asks.
class CurrentContext {
  public:
    explicit CurrentContext(CUcontext context) {
        CUcontext now = nullptr;
        CUSLICE_REAL(cuCtxGetCurrent)(&now);
        pushed_ = now != context && CUSLICE_REAL(cuCtxPushCurrent_v2)(context) == CUDA_SUCCESS;
        is_current_ = pushed_ || now == context;
    }
    ~CurrentContext() {
        CUcontext popped = nullptr;
        if (pushed_) CUSLICE_REAL(cuCtxPopCurrent_v2)(&popped);
    }
    CurrentContext(const CurrentContext&) = delete;
    CurrentContext& operator=(const CurrentContext&) = delete;

    // False if it is no context any more.
    explicit operator bool() const { return is_current_; }

  private:
    bool pushed_ = false, is_current_ = false;
};

}  // namespace cuslice
