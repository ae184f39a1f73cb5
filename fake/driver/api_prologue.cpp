// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/api_prologue.h"

#include <cstring>

#include "fake/driver/context.h"
#include "fake/driver/injection.h"
#include "fake/driver/late.h"
#include "fake/driver/log.h"
#include "fake/driver/state.h"
#include "fake/driver/work_fault.h"

namespace cuslice::fake {

namespace {

/// True if a function needs its device alive. Functions that query devices or change the current context don't: a
/// program must be able to turn away from a device that is lost.
bool uses_device(const char* name) {
    for (const char* free :
         {"cuDevice", "cuCtxSetCurrent", "cuCtxGetCurrent", "cuCtxPushCurrent", "cuCtxPopCurrent", "cuCtxGetDevice"}) {
        if (std::strncmp(name, free, std::strlen(free)) == 0)
            return false;
    }
    return true;
}

}  // namespace

CUresult pass_gate(const char* name, bool anytime) {
    const unsigned bits = gate.load(std::memory_order_acquire);
    if ((bits & kGateDeinitialised) != 0)
        return CUDA_ERROR_DEINITIALIZED;
    if ((bits & kGateNotInitialised) != 0 && !anytime)
        return CUDA_ERROR_NOT_INITIALIZED;
    if ((bits & kGateLate) != 0)
        settle_before(name);
    const bool fault = (gate.load(std::memory_order_acquire) & kGateFault) != 0;
    if ((bits & kGateInjection) == 0 && !fault)
        return CUDA_SUCCESS;
    if ((bits & kGateInjection) != 0) {
        const CUresult result = injection().call(name);
        for (int ordinal = 0; injection().device_lost(ordinal);) {
            if (Gpu* gpu = driver().gpu(ordinal))
                gpu->lost = true;
        }
        if (result != CUDA_SUCCESS)
            return result;
    }
    if (anytime || !uses_device(name))
        return CUDA_SUCCESS;
    Context* context = nullptr;
    if (current_context(context) != CUDA_SUCCESS)
        return CUDA_SUCCESS;
    if (context->gpu->lost.load(std::memory_order_relaxed))
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    return fault && std::strncmp(name, "cuCtxDestroy", 12) != 0 ? take_fault(*context) : CUDA_SUCCESS;
}

CUresult unsupported(const char* name, std::atomic<bool>& said) {
    CUSLICE_TRY(pass_gate(name, false));
    if (!said.exchange(true))
        log_line(std::string(name) + " is not supported");
    return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace cuslice::fake
