// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/current_context.h"

namespace cuslice {

bool is_own(CUcontext context) { return context && current_context() == context; }

void NamedContext::visit(CUcontext context, Of of, bool takes) {
    visit_.emplace(context, takes);
    is_there_ = *visit_ && (of == Of::any || gpu_state().contexts.known_id(context));
}

}  // namespace cuslice
