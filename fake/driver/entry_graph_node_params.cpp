// SPDX-License-Identifier: Apache-2.0
// Parameters of a graph's nodes: read as they were given or captured, and changed. Instances stay as they were.

#include <cstring>
#include <utility>

#include "fake/driver/api_prologue.h"
#include "fake/driver/graph.h"
#include "fake/driver/graph_make_work.h"
#include "fake/driver/zero.h"

using namespace cuslice::fake;

namespace {

/// CUDA_ERROR_INVALID_VALUE unless the node is of this type.
CUresult find_parameters(CUgraphNode handle, NodeType type, CUgraphNodeParams& out) {
    CUSLICE_FIND_ARGUMENT(node, graph_nodes, handle);
    if (node->work.type != type)
        return CUDA_ERROR_INVALID_VALUE;
    const NodeParameters* const parameters = node->work.parameters.get();
    if (parameters == nullptr)
        CUSLICE_UNSUPPORTED("reading the parameters of a captured copy of bytes in an array");
    if (!parameters->has_arguments)
        CUSLICE_UNSUPPORTED("reading the arguments of a kernel whose parameters aren't known");
    out = parameters->all;
    return CUDA_SUCCESS;
}

template <typename Older>
CUresult get_kernel(CUgraphNode handle, Older* out) {
    CUgraphNodeParams found{};
    CUSLICE_TRY(find_parameters(handle, CU_GRAPH_NODE_TYPE_KERNEL, found));
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(out, &found.kernel, sizeof *out);
    return CUDA_SUCCESS;
}

CUresult set(CUgraphNode handle, const CUgraphNodeParams& params) {
    CUSLICE_FIND_ARGUMENT(node, graph_nodes, handle);
    if (node->work.type != params.type)
        return CUDA_ERROR_INVALID_VALUE;
    NodeWork work;
    CUSLICE_TRY(make_work(params, work));
    node->work = std::move(work);
    return CUDA_SUCCESS;
}

CUresult get_event(CUgraphNode handle, NodeType type, CUevent* out) {
    CUSLICE_FIND_ARGUMENT(node, graph_nodes, handle);
    if (out == nullptr || node->work.type != type)
        return CUDA_ERROR_INVALID_VALUE;
    *out = event_of(node->work);
    return CUDA_SUCCESS;
}

}  // namespace

// The first form has no kernel: what was made of one has it in the place of its function.
CUSLICE_ENTRY(cuGraphKernelNodeGetParams, node, out) {
    CUDA_KERNEL_NODE_PARAMS_v3 found{};
    CUSLICE_TRY(get_kernel(node, &found));
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    if (found.func == nullptr)
        found.func = reinterpret_cast<CUfunction>(found.kern);
    std::memcpy(out, &found, sizeof *out);
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuGraphKernelNodeGetParams_v2, node, out) { return get_kernel(node, out); }

CUSLICE_ENTRY(cuGraphKernelNodeSetParams, node, params) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE : set(node, kernel_params(*params));
}

CUSLICE_ENTRY(cuGraphKernelNodeSetParams_v2, node, params) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE : set(node, kernel_params(*params));
}

CUSLICE_ENTRY(cuGraphMemcpyNodeGetParams, node, out) {
    CUgraphNodeParams found{};
    CUSLICE_TRY(find_parameters(node, CU_GRAPH_NODE_TYPE_MEMCPY, found));
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    *out = found.memcpy.copyParams;
    return CUDA_SUCCESS;
}

// The context isn't among the parameters: it stays.
CUSLICE_ENTRY(cuGraphMemcpyNodeSetParams, node, copy) {
    CUgraphNodeParams found{};
    CUSLICE_TRY(find_parameters(node, CU_GRAPH_NODE_TYPE_MEMCPY, found));
    return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : set(node, node_params(*copy, found.memcpy.copyCtx));
}

CUSLICE_ENTRY(cuGraphMemsetNodeGetParams, node, out) {
    CUgraphNodeParams found{};
    CUSLICE_TRY(find_parameters(node, CU_GRAPH_NODE_TYPE_MEMSET, found));
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_MEMSET_NODE_PARAMS_v2& fill = found.memset;
    *out = {fill.dst, fill.pitch, fill.value, fill.elementSize, fill.width, fill.height};
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuGraphMemsetNodeSetParams, node, fill) {
    CUgraphNodeParams found{};
    CUSLICE_TRY(find_parameters(node, CU_GRAPH_NODE_TYPE_MEMSET, found));
    return fill == nullptr ? CUDA_ERROR_INVALID_VALUE : set(node, fill_params(*fill, found.memset.ctx));
}

CUSLICE_ENTRY(cuGraphHostNodeGetParams, node, out) {
    CUgraphNodeParams found{};
    CUSLICE_TRY(find_parameters(node, CU_GRAPH_NODE_TYPE_HOST, found));
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    *out = {found.host.fn, found.host.userData};
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuGraphHostNodeSetParams, node, params) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE : set(node, node_params(*params));
}

CUSLICE_ENTRY(cuGraphEventRecordNodeGetEvent, node, out) {
    return get_event(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, out);
}

CUSLICE_ENTRY(cuGraphEventRecordNodeSetEvent, node, event) {
    return set(node, node_params(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event));
}

CUSLICE_ENTRY(cuGraphEventWaitNodeGetEvent, node, out) { return get_event(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, out); }

CUSLICE_ENTRY(cuGraphEventWaitNodeSetEvent, node, event) {
    return set(node, node_params(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event));
}

CUSLICE_ENTRY(cuGraphNodeSetParams, node, params) {
    if (params == nullptr || !all_zero(params->reserved0) || params->reserved2 != 0)
        return CUDA_ERROR_INVALID_VALUE;
    switch (params->type) {
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        case CU_GRAPH_NODE_TYPE_MEM_FREE:
            return CUDA_ERROR_NOT_SUPPORTED;  // documented
        case CU_GRAPH_NODE_TYPE_GRAPH:
        case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
        case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
        case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
            CUSLICE_UNSUPPORTED("cuGraphNodeSetParams of child graphs, semaphores and memory operations");
        default: {
            CUgraphNodeParams with_context = *params;
            CUSLICE_TRY(take_context(with_context));
            return set(node, with_context);
        }
    }
}
