#include "virtual_gpu/gpu/current_context.h"

namespace cuslice {

bool is_own(CUcontext context) {
    CUcontext now = nullptr;
    return context && CUSLICE_REAL(cuCtxGetCurrent)(&now) == CUDA_SUCCESS && now == context;
}

CurrentContext::CurrentContext(CUcontext context, Of of, bool takes) {
    const bool own = is_own(context);
    if (!own || takes) {
        visit_.emplace(context, takes);
        if (!*visit_ || (of == Of::known && !gpu_state().contexts.known_id(context))) return;
    }
    is_current_ = own || pushed_.push(context);
}

NamedContext::NamedContext(CUcontext context) : is_there_(is_own(context)) {
    if (is_there_) return;
    visit_.emplace(context);
    is_there_ = *visit_ && gpu_state().contexts.known_id(context);
}

}  // namespace cuslice
