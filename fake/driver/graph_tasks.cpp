// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/graph_tasks.h"

#include "fake/driver/api_prologue.h"
#include "fake/driver/box.h"
#include "fake/driver/module.h"
#include "fake/driver/skipped_kernels.h"

namespace cuslice::fake {

CUresult make_task(const CUDA_KERNEL_NODE_PARAMS_v3& params, Task& task) {
    CUSLICE_TRY(check_kernel_node(params));
    task = skip_kernel();
    return CUDA_SUCCESS;
}

CUresult make_task(const CUDA_MEMCPY3D& copy, CUcontext context_handle, Task& task) {
    const Context* context = live_context(context_handle);
    if (context == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    Box box;
    CheckedBox checked;
    checked.task = [] {};
    CUSLICE_TRY(box_of(copy, context->gpu->ordinal, box));
    if (!box.empty()) {
        CUSLICE_TRY(check_box(box, context_handle, checked));
    }
    task = std::move(checked.task);
    return CUDA_SUCCESS;
}

CUresult make_task(const CUDA_MEMSET_NODE_PARAMS_v2& params, Task& task) {
    const Context* context = live_context(params.ctx);
    const unsigned element = params.elementSize;
    if (context == nullptr || (element != 1 && element != 2 && element != 4))
        return CUDA_ERROR_INVALID_VALUE;
    CheckedFill checked;
    const Fill fill{params.dst, params.pitch, params.value, element, params.width, params.height};
    CUSLICE_TRY(check_fill(fill, params.ctx, context->gpu->ordinal, checked));
    task = std::move(checked.task);
    return CUDA_SUCCESS;
}

CUresult make_task(CUhostFn function, void* data, Task& task) {
    if (function == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    task = [function, data] { function(data); };
    return CUDA_SUCCESS;
}

}  // namespace cuslice::fake
