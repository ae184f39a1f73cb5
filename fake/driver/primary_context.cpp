// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/primary_context.h"

#include "fake/driver/lifetime.h"
#include "fake/driver/state.h"

namespace cuslice::fake {

Primary& primary_of(const Gpu& gpu) {
    static auto* all = new Primary[64];
    return all[gpu.ordinal];
}

CUresult retain_primary(Gpu& gpu, Context*& context) {
    Primary& primary = primary_of(gpu);
    if (primary.context == nullptr || !primary.context->active) {
        CUSLICE_TRY(create_context(gpu, primary.flags, true, primary.context));
    }
    primary.retained++;
    context = primary.context;
    return CUDA_SUCCESS;
}

CUresult release_primary(const Gpu& gpu) {
    Primary& primary = primary_of(gpu);
    if (primary.retained == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (--primary.retained == 0 && primary.context->active)
        end_context(*primary.context);
    return CUDA_SUCCESS;
}

void drain_primary(const Gpu& gpu, bool last) {
    Context* context = nullptr;
    {
        const DriverLock hold;
        const Primary& primary = primary_of(gpu);
        if (!last || primary.retained == 1)
            context = primary.context;
    }
    if (context != nullptr && context->active)
        drain_streams(*context);
}

}  // namespace cuslice::fake
