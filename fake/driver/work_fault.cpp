// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/work_fault.h"

namespace cuslice::fake {

void work_failed(CUcontext handle, CUresult error) {
    Context* context = live_context(handle);
    if (context == nullptr)
        return;
    CUresult none = CUDA_SUCCESS;
    context->fault.compare_exchange_strong(none, error);  // the first one is told
    gate.fetch_or(kGateFault);
}

CUresult take_fault(Context& context) {
    CUresult fault = context.fault.load();
    while (fault != CUDA_SUCCESS && fault != CUDA_ERROR_ILLEGAL_ADDRESS &&
           !context.fault.compare_exchange_weak(fault, CUDA_SUCCESS)) {
    }
    return fault;
}

}  // namespace cuslice::fake
