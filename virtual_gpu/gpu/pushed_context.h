// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "virtual_gpu/driver/table.h"

namespace cuslice {

// This thread's; null if there is none.
inline CUcontext current_context() {
    CUcontext now = nullptr;
    CUSLICE_REAL(cuCtxGetCurrent)(&now);
    return now;
}

// A context on top of this thread's stack for a while. Afterwards the stack is as it was, even if the context has ended
// meanwhile.
class PushedContext {
  public:
    PushedContext() = default;
    ~PushedContext() { pop(); }
    PushedContext(const PushedContext&) = delete;
    PushedContext& operator=(const PushedContext&) = delete;

    // False if the driver doesn't take it.
    bool push(CUcontext context);
    void pop();

  private:
    CUcontext before_ = nullptr, pushed_ = nullptr;
};

}  // namespace cuslice
