// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/cache/quiescence.h"

#include <iterator>
#include <span>

#include "policy/base/cancellation.h"
#include "virtual_gpu/gpu/current_context.h"
#include "virtual_gpu/gpu/relaxed_captures.h"

namespace cuslice {

using Sure = CaptureTracker::Asking::Sure;

int Quiescence::in_context() {
    CUcontext current = nullptr;
    const CUresult asked = CUSLICE_REAL(cuCtxGetCurrent)(&current);
    return asked != CUDA_SUCCESS || current ? asked : CUDA_ERROR_INVALID_CONTEXT;
}

Fence Quiescence::fence(CUcontext context, CUdeviceptr address) {
    return fence_within(CaptureTracker::Asking(captures, Sure::no), context, address);
}

Fence Quiescence::fence_within(const CaptureTracker::Asking& asking, CUcontext context, CUdeviceptr address) {
    if (!asking)
        return 0;
    CUcontext all[Fences::kMaxContexts];
    const size_t count = reach.list(gpu_state().contexts, context, address, all, std::size(all));
    return count <= std::size(all) ? fences.make(all, count) : 0;
}

bool Quiescence::past(CUcontext context, CUdeviceptr address, Fence* made) {
    const CaptureTracker::Asking asking(captures, Sure::no);
    *made = fence_within(asking, context, address);
    if (!*made || !fences.passed(*made, false))
        return false;
    *made = 0;
    return true;
}

// A thread whose mode is relaxed may ask for events, and wait for them, in the midst of captures; only to record them
// it may not.
bool Quiescence::passed(Fence fence, bool wait) {
    if (const RelaxedCaptures relaxed; relaxed)
        return fences.passed(fence, wait);
    const CaptureTracker::Asking asking(captures, wait ? Sure::yes : Sure::no);
    return asking && fences.passed(fence, wait);
}

namespace {

// The answer of a call in the context; CUDA_ERROR_CONTEXT_IS_DESTROYED where that has ended.
template <typename During, typename Call>
int answer_within(const During& during, Call call) {
    return during ? call() : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

int wait_for_work_of(CUcontext context) {
    const DisableCancellation uncancelled;
    if (driver_slot(Function::cuCtxSynchronize_v2))
        return answer_within(NamedContext(context), [&] { return CUSLICE_REAL(cuCtxSynchronize_v2)(context); });
    return answer_within(CurrentContext(context), [] { return CUSLICE_REAL(cuCtxSynchronize)(); });
}

int wait_for_work_in_capture(CUcontext context) {
    const DisableCancellation uncancelled;
    const int result = answer_within(CurrentContext(context), wait_by_free);
    return result == CUDA_ERROR_OUT_OF_MEMORY ? kNotNow : result;
}

// A context that has ended meanwhile has waited for its own work.
bool has_ended(int result) { return result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_INVALID_CONTEXT; }

}  // namespace

// Not 0: the driver's error, or kNotNow.
template <typename May, typename Wait>
int Quiescence::wait_for_all(const May& may, CUcontext context, CUdeviceptr address, Wait wait) {
    if (!may)
        return kNotNow;
    CUcontext all[Reach::kMaxContexts];
    const size_t count = reach.list(gpu_state().contexts, context, address, all, std::size(all));
    if (count > std::size(all))
        return kNotNow;
    for (const CUcontext reached : std::span(all, count)) {
        const int result = wait(reached);
        if (is_of_capture(result))
            return kNotNow;
        if (result != CUDA_SUCCESS && !has_ended(result))
            return result;
    }
    return 0;
}

// A free of the program's is deferred where it can't be waited for, and later the driver can be asked again. Where a
// capture began unseen, the driver says so.
int Quiescence::quiesce(CUcontext context, CUdeviceptr address, bool for_program) {
    {
        const CaptureTracker::Asking asking(captures, for_program ? Sure::no : Sure::yes);
        const int result = wait_for_all(asking, context, address, wait_for_work_of);
        if (for_program || result != kNotNow)
            return result;
    }
    return wait_for_all(RelaxedCaptures(), context, address, wait_for_work_in_capture);
}

}  // namespace cuslice
