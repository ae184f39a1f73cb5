// SPDX-License-Identifier: Apache-2.0
// Changes of an instantiated graph's nodes: what they do at the next launch. The graph itself stays as it was.

#include <memory>
#include <utility>
#include <vector>

#include "fake/driver/api_prologue.h"
#include "fake/driver/graph_exec.h"
#include "fake/driver/graph_make_work.h"
#include "fake/driver/zero.h"

using namespace cuslice::fake;

namespace {

ExecNode* find_node(std::vector<ExecNode>& nodes, CUgraphNode handle) {
    for (ExecNode& node : nodes) {
        if (node.node == handle)
            return &node;
        if (ExecNode* inner = find_node(node.children, handle); inner != nullptr)
            return inner;
    }
    return nullptr;
}

/// The node of an instance that was made from this one; null if there is none, or the graph's own has ended.
ExecNode* find(CUgraphExec exec_handle, CUgraphNode handle) {
    GraphExec* exec = graph_execs.find(exec_handle);
    return exec == nullptr || graph_nodes.find(handle) == nullptr ? nullptr : find_node(exec->nodes, handle);
}

CUresult set(CUgraphExec exec, CUgraphNode handle, const CUgraphNodeParams& params) {
    ExecNode* const node = find(exec, handle);
    if (node == nullptr || node->work.type != params.type)
        return CUDA_ERROR_INVALID_VALUE;
    NodeWork work;
    CUSLICE_TRY(make_work(params, work));
    if (!same_owner(node->work, work))
        return CUDA_ERROR_INVALID_VALUE;
    node->work = std::move(work);
    return CUDA_SUCCESS;
}

CUresult set_child(CUgraphExec exec, CUgraphNode handle, CUgraph child) {
    ExecNode* node = find(exec, handle);
    const Graph* graph = graphs.find(child);
    if (node == nullptr || node->work.type != CU_GRAPH_NODE_TYPE_GRAPH || graph == nullptr || !graph->can_be_copied())
        return CUDA_ERROR_INVALID_VALUE;
    const CUgraphExecUpdateResultInfo result = update_nodes(node->children, exec_nodes(*graph));
    if (result.result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    node->objects = std::make_shared<const HeldObjects>(graph->objects);
    return CUDA_SUCCESS;
}

CUresult set_any(CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams& params) {
    if (!all_zero(params.reserved0) || params.reserved2 != 0)
        return CUDA_ERROR_INVALID_VALUE;
    switch (params.type) {
        case CU_GRAPH_NODE_TYPE_GRAPH:
            return set_child(exec, node, params.graph.graph);
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        case CU_GRAPH_NODE_TYPE_MEM_FREE:
            return CUDA_ERROR_NOT_SUPPORTED;  // documented
        case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
        case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
        case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
            CUSLICE_UNSUPPORTED("cuGraphExecNodeSetParams of semaphores and memory operations");
        default: {
            CUgraphNodeParams with_context = params;
            CUSLICE_TRY(take_context(with_context));
            return set(exec, node, with_context);
        }
    }
}

CUgraphExecUpdateResultInfo update(CUgraphExec handle, CUgraph graph_handle) {
    GraphExec* const exec = graph_execs.find(handle);
    const Graph* const graph = graphs.find(graph_handle);
    if (exec == nullptr || graph == nullptr || nodes_in_order(*graph).size() != graph->nodes.size())
        return {CU_GRAPH_EXEC_UPDATE_ERROR, nullptr, nullptr};
    const CUgraphExecUpdateResultInfo result = update_nodes(exec->nodes, exec_nodes(*graph));
    if (result.result == CU_GRAPH_EXEC_UPDATE_SUCCESS)
        exec->objects = std::make_shared<const HeldObjects>(graph->objects);
    return result;
}

/// Documented: kernels, copies and fills alone.
ExecNode* find_switchable(CUgraphExec exec, CUgraphNode handle) {
    ExecNode* const node = find(exec, handle);
    const NodeType type = node != nullptr ? node->work.type : CU_GRAPH_NODE_TYPE_EMPTY;
    const bool can_be =
        type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY || type == CU_GRAPH_NODE_TYPE_MEMSET;
    return can_be ? node : nullptr;
}

}  // namespace

CUSLICE_ENTRY(cuGraphExecKernelNodeSetParams, exec, node, params) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE : set(exec, node, kernel_params(*params));
}

CUSLICE_ENTRY(cuGraphExecKernelNodeSetParams_v2, exec, node, params) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE : set(exec, node, kernel_params(*params));
}

CUSLICE_ENTRY(cuGraphExecMemcpyNodeSetParams, exec, node, copy, context) {
    return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : set(exec, node, node_params(*copy, context));
}

CUSLICE_ENTRY(cuGraphExecMemsetNodeSetParams, exec, node, params, context) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE : set(exec, node, fill_params(*params, context));
}

CUSLICE_ENTRY(cuGraphExecHostNodeSetParams, exec, node, params) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE : set(exec, node, node_params(*params));
}

CUSLICE_ENTRY(cuGraphExecEventRecordNodeSetEvent, exec, node, event) {
    return set(exec, node, node_params(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event));
}

CUSLICE_ENTRY(cuGraphExecEventWaitNodeSetEvent, exec, node, event) {
    return set(exec, node, node_params(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event));
}

CUSLICE_ENTRY(cuGraphExecChildGraphNodeSetParams, exec, node, child) { return set_child(exec, node, child); }

CUSLICE_ENTRY(cuGraphExecNodeSetParams, exec, node, params) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE : set_any(exec, node, *params);
}

CUSLICE_ENTRY(cuGraphExecUpdate, exec, graph, node, result) {
    const CUgraphExecUpdateResultInfo info = update(exec, graph);
    if (node != nullptr)
        *node = info.errorNode;
    if (result != nullptr)
        *result = info.result;
    return info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

CUSLICE_ENTRY(cuGraphExecUpdate_v2, exec, graph, info) {
    const CUgraphExecUpdateResultInfo result = update(exec, graph);
    if (info != nullptr)
        *info = result;
    return result.result == CU_GRAPH_EXEC_UPDATE_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

CUSLICE_ENTRY(cuGraphNodeSetEnabled, exec, handle, enabled) {
    ExecNode* const node = find_switchable(exec, handle);
    if (node == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    node->enabled = enabled != 0;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuGraphNodeGetEnabled, exec, handle, enabled) {
    const ExecNode* const node = find_switchable(exec, handle);
    if (node == nullptr || enabled == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    *enabled = node->enabled ? 1 : 0;
    return CUDA_SUCCESS;
}
