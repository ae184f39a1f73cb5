#include "virtual_gpu/cache/quiescence.h"

#include <iterator>

#include "policy/base/cancellation.h"
#include "virtual_gpu/gpu/current_context.h"

namespace cuslice {

int Quiescence::in_context() {
    CUcontext current = nullptr;
    const CUresult asked = CUSLICE_REAL(cuCtxGetCurrent)(&current);
    return asked != CUDA_SUCCESS || current ? asked : CUDA_ERROR_INVALID_CONTEXT;
}

Fence Quiescence::fence(CUcontext context, CUdeviceptr address) {
    if (captures.any()) return 0;
    CUcontext all[Fences::kMaxContexts];
    const std::size_t count = reach.list(gpu_state().contexts, context, address, all, std::size(all));
    return count <= std::size(all) ? fences.make(all, count) : 0;
}

namespace {

CUresult wait_for_work_of(CUcontext context) {
    const DisableCancellation uncancelled;
    if (driver_slot(Function::cuCtxSynchronize_v2)) {
        const NamedContext during(context);
        return during ? CUSLICE_REAL(cuCtxSynchronize_v2)(context) : CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    const CurrentContext during(context, CurrentContext::Of::known);
    return during ? CUSLICE_REAL(cuCtxSynchronize)() : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

}  // namespace

// A free of the program's is deferred where it can't be waited for, and later the driver can be asked again.
int Quiescence::quiesce(CUcontext context, CUdeviceptr address, bool for_program) {
    if (for_program ? captures.any() : captures.any_for_sure()) return kNotNow;
    CUcontext all[Reach::kMaxContexts];
    const std::size_t count = reach.list(gpu_state().contexts, context, address, all, std::size(all));
    if (count > std::size(all)) return kNotNow;
    for (std::size_t i = 0; i < count; i++) {
        const CUresult result = wait_for_work_of(all[i]);
        // One that has ended meanwhile has waited for its own work.
        const bool ended = result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_INVALID_CONTEXT;
        if (result != CUDA_SUCCESS && !ended) return result;
    }
    return 0;
}

}  // namespace cuslice
