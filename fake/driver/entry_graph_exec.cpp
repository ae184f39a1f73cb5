// SPDX-License-Identifier: Apache-2.0
// Changes of an instantiated graph's nodes: what they do at the next launch. The graph itself stays as it was.

#include "fake/driver/api_prologue.h"
#include "fake/driver/graph_tasks.h"

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

/// The node of an instance that was made from a node of this type; null if there is none, or the graph's own has ended.
ExecNode* find(CUgraphExec exec_handle, CUgraphNode handle, NodeType type) {
    GraphExec* exec = graph_execs.find(exec_handle);
    if (exec == nullptr || graph_nodes.find(handle) == nullptr)
        return nullptr;
    ExecNode* node = find_node(exec->nodes, handle);
    return node != nullptr && node->type == type ? node : nullptr;
}

CUresult set_kernel(CUgraphExec exec, CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS_v3& params) {
    ExecNode* node = find(exec, handle, CU_GRAPH_NODE_TYPE_KERNEL);
    return node == nullptr ? CUDA_ERROR_INVALID_VALUE : kernel_task(params, node->task);
}

CUresult set_copy(CUgraphExec exec, CUgraphNode handle, const CUDA_MEMCPY3D& copy, CUcontext context) {
    ExecNode* node = find(exec, handle, CU_GRAPH_NODE_TYPE_MEMCPY);
    return node == nullptr ? CUDA_ERROR_INVALID_VALUE : copy_task(copy, context, node->task);
}

CUresult set_fill(CUgraphExec exec, CUgraphNode handle, const CUDA_MEMSET_NODE_PARAMS_v2& params) {
    ExecNode* node = find(exec, handle, CU_GRAPH_NODE_TYPE_MEMSET);
    return node == nullptr ? CUDA_ERROR_INVALID_VALUE : fill_task(params, node->task);
}

CUresult set_host(CUgraphExec exec, CUgraphNode handle, CUhostFn function, void* data) {
    ExecNode* node = find(exec, handle, CU_GRAPH_NODE_TYPE_HOST);
    return node == nullptr ? CUDA_ERROR_INVALID_VALUE : host_task(function, data, node->task);
}

/// Documented: the same nodes in the same order. The instance's nodes keep the handles by which they are named.
CUresult take_over(std::vector<ExecNode>& nodes, const std::vector<ExecNode>& from, bool only_look) {
    if (nodes.size() != from.size())
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < nodes.size(); i++) {
        if (nodes[i].type != from[i].type)
            return CUDA_ERROR_INVALID_VALUE;
        CUSLICE_TRY(take_over(nodes[i].children, from[i].children, only_look));
        if (only_look)
            continue;
        nodes[i].task = from[i].task;
        nodes[i].objects = from[i].objects;
    }
    return CUDA_SUCCESS;
}

CUresult set_child(CUgraphExec exec, CUgraphNode handle, CUgraph child) {
    ExecNode* node = find(exec, handle, CU_GRAPH_NODE_TYPE_GRAPH);
    const Graph* graph = graphs.find(child);
    if (node == nullptr || graph == nullptr || graph->has_memory)
        return CUDA_ERROR_INVALID_VALUE;
    const std::vector<ExecNode> from = exec_nodes(*graph);
    CUSLICE_TRY(take_over(node->children, from, true));
    node->objects = std::make_shared<const HeldObjects>(graph->objects);
    return take_over(node->children, from, false);
}

CUresult set_any(CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams& params) {
    switch (params.type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            return set_kernel(exec, node, params.kernel);
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            return set_copy(exec, node, params.memcpy.copyParams, params.memcpy.copyCtx);
        case CU_GRAPH_NODE_TYPE_MEMSET:
            return set_fill(exec, node, params.memset);
        case CU_GRAPH_NODE_TYPE_HOST:
            return set_host(exec, node, params.host.fn, params.host.userData);
        case CU_GRAPH_NODE_TYPE_GRAPH:
            return set_child(exec, node, params.graph.graph);
        default:
            CUSLICE_UNSUPPORTED("cuGraphExecNodeSetParams of such a node");
    }
}

}  // namespace

CUSLICE_ENTRY(cuGraphExecKernelNodeSetParams, exec, node, params) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE : set_kernel(exec, node, newest(*params));
}

CUSLICE_ENTRY(cuGraphExecKernelNodeSetParams_v2, exec, node, params) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE : set_kernel(exec, node, newest(*params));
}

CUSLICE_ENTRY(cuGraphExecMemcpyNodeSetParams, exec, node, copy, context) {
    return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : set_copy(exec, node, *copy, context);
}

CUSLICE_ENTRY(cuGraphExecMemsetNodeSetParams, exec, node, params, context) {
    if (params == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    return set_fill(
        exec, node,
        {params->dst, params->pitch, params->value, params->elementSize, params->width, params->height, context});
}

CUSLICE_ENTRY(cuGraphExecHostNodeSetParams, exec, node, params) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE : set_host(exec, node, params->fn, params->userData);
}

CUSLICE_ENTRY(cuGraphExecChildGraphNodeSetParams, exec, node, child) { return set_child(exec, node, child); }

CUSLICE_ENTRY(cuGraphExecNodeSetParams, exec, node, params) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE : set_any(exec, node, *params);
}
