// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/current_context.h"

namespace cuslice {

namespace {

bool is_known(CUcontext context) { return gpu_state().contexts.known_id(context) != 0; }

}  // namespace

bool is_own(CUcontext context) {
    if (!context)
        return false;
    CUcontext now = nullptr;
    if (CUSLICE_REAL(cuCtxGetCurrent)(&now) != CUDA_SUCCESS)
        return false;
    return now == context;
}

CurrentContext::CurrentContext(CUcontext context, Of of, bool takes) {
    const bool own = is_own(context);
    if (!own || takes) {
        visit_.emplace(context, takes);
        if (!*visit_)
            return;
        if (of == Of::known && !is_known(context))
            return;
    }
    is_current_ = own || pushed_.push(context);
}

NamedContext::NamedContext(CUcontext context) : is_there_(is_own(context)) {
    if (is_there_)
        return;
    visit_.emplace(context);
    is_there_ = *visit_ && is_known(context);
}

}  // namespace cuslice
