// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/pushed_context.h"

namespace cuslice {

bool PushedContext::push(CUcontext context) {
    before_ = current_context();
    if (CUSLICE_REAL(cuCtxPushCurrent_v2)(context) == CUDA_SUCCESS)
        pushed_ = context;
    return pushed_;
}

// A driver may not pop a context that has been destroyed. Null takes the top off, whatever it is.
void PushedContext::pop() {
    if (!pushed_)
        return;
    CUcontext popped = nullptr;
    const bool done = CUSLICE_REAL(cuCtxPopCurrent_v2)(&popped) == CUDA_SUCCESS;
    if (!done && current_context() == pushed_)
        CUSLICE_REAL(cuCtxSetCurrent)(nullptr);
    if (current_context() != before_)
        CUSLICE_REAL(cuCtxSetCurrent)(before_);
    pushed_ = nullptr;
}

}  // namespace cuslice
