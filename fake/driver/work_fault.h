// SPDX-License-Identifier: Apache-2.0
#pragma once
// Work that fails when it is done, after the call that submitted it: whoever calls next in its context is told.

#include "fake/driver/context.h"
#include "fake/driver/gate.h"

namespace cuslice::fake {

/// Work of this context has failed. Any thread; a context that has ended meanwhile is told nothing.
void work_failed(CUcontext context, CUresult error);

/// The error of work that has failed since this was asked last. An illegal address stays for as long as the context
/// does, as in NVIDIA's driver; host memory that ran out is told once.
CUresult take_fault(Context& context);

/// The same at the end of a call that has run or awaited work.
inline CUresult fault_of_work(Context& context) {
    return (gate.load(std::memory_order_acquire) & kGateFault) == 0 ? CUDA_SUCCESS : take_fault(context);
}

}  // namespace cuslice::fake
