// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/graph_make_work.h"

#include <memory>
#include <utility>

#include "fake/driver/api_prologue.h"
#include "fake/driver/box.h"
#include "fake/driver/event.h"
#include "fake/driver/module.h"
#include "fake/driver/skipped_kernels.h"
#include "fake/driver/timing.h"
#include "fake/driver/transfer.h"

namespace cuslice::fake {

namespace {

CUresult make_kernel(const CUgraphNodeParams& params, NodeWork& out) {
    const auto kept = std::make_shared<NodeParameters>();
    kept->all = params;
    std::shared_ptr<const KernelInfo> info;
    CUSLICE_TRY(check_kernel_node(kept->all.kernel, info));
    kept->own_arguments(*info);
    out = {params.type, skip_kernel(), kept};
    const CUDA_KERNEL_NODE_PARAMS_v3& of = kept->all.kernel;
    const Context* const context = live_context(of.ctx);
    const LaunchShape shape{
        {of.gridDimX, of.gridDimY, of.gridDimZ}, {of.blockDimX, of.blockDimY, of.blockDimZ}, of.sharedMemBytes};
    return context == nullptr ? CUDA_SUCCESS
                              : kernel_needs(*info, shape, {.parameters = of.kernelParams, .extra = of.extra},
                                             context->gpu->spec, out.needs);
}

CUresult make_copy(const CUDA_MEMCPY_NODE_PARAMS& params, NodeWork& out) {
    const Context* context = live_context(params.copyCtx);
    if (context == nullptr || params.flags != 0 || params.reserved != 0)
        return CUDA_ERROR_INVALID_VALUE;
    Box box;
    CheckedBox checked;
    checked.task = [] {};
    CUSLICE_TRY(box_of(params.copyParams, context->gpu->ordinal, box));
    if (!box.empty()) {
        CUSLICE_TRY(check_box(box, params.copyCtx, checked));
    }
    out = copy_work(std::move(checked.task), checked.to, checked.from, box.height * box.depth);
    return CUDA_SUCCESS;
}

CUresult make_fill(const CUDA_MEMSET_NODE_PARAMS_v2& params, NodeWork& out) {
    const Context* context = live_context(params.ctx);
    const unsigned element = params.elementSize;
    if (context == nullptr || (element != 1 && element != 2 && element != 4))
        return CUDA_ERROR_INVALID_VALUE;
    CheckedFill checked;
    const Fill fill{params.dst, params.pitch, params.value, element, params.width, params.height};
    CUSLICE_TRY(check_fill(fill, params.ctx, context->gpu->ordinal, checked));
    out = {.type = CU_GRAPH_NODE_TYPE_MEMSET, .task = std::move(checked.task)};
    out.needs.work = fill_time(checked.rows);
    return CUDA_SUCCESS;
}

/// The work, but for its parameters.
CUresult make_unnamed(const CUgraphNodeParams& params, NodeWork& out) {
    switch (params.type) {
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            return make_copy(params.memcpy, out);
        case CU_GRAPH_NODE_TYPE_MEMSET:
            return make_fill(params.memset, out);
        case CU_GRAPH_NODE_TYPE_HOST:
            if (params.host.fn == nullptr)
                return CUDA_ERROR_INVALID_VALUE;
            out.task = [function = params.host.fn, data = params.host.userData] { function(data); };
            return CUDA_SUCCESS;
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
            return events.find(params.eventRecord.event) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
            return events.find(params.eventWait.event) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        case CU_GRAPH_NODE_TYPE_EMPTY:
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

}  // namespace

CUresult take_context(CUgraphNodeParams& params) {
    CUcontext* taken = nullptr;
    if (params.type == CU_GRAPH_NODE_TYPE_MEMCPY)
        taken = &params.memcpy.copyCtx;
    else if (params.type == CU_GRAPH_NODE_TYPE_MEMSET)
        taken = &params.memset.ctx;
    if (taken == nullptr || *taken != nullptr)
        return CUDA_SUCCESS;
    CUSLICE_FIND_CURRENT(context);
    *taken = context->handle;
    return CUDA_SUCCESS;
}

CUresult make_work(const CUgraphNodeParams& params, NodeWork& out) {
    if (params.type == CU_GRAPH_NODE_TYPE_KERNEL)
        return make_kernel(params, out);
    out = {.type = params.type};
    CUSLICE_TRY(make_unnamed(params, out));
    out.parameters = captured_work(params).parameters;
    return CUDA_SUCCESS;
}

}  // namespace cuslice::fake
