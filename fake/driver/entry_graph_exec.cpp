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

/// Gives the node of an instance another task, made of parameters as make_task() takes them.
template <typename... Parameters>
CUresult set(CUgraphExec exec, CUgraphNode handle, NodeType type, const Parameters&... parameters) {
    ExecNode* node = find(exec, handle, type);
    return node == nullptr ? CUDA_ERROR_INVALID_VALUE : make_task(parameters..., node->task);
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
        nodes[i].chosen = from[i].chosen;
    }
    return CUDA_SUCCESS;
}

CUresult set_child(CUgraphExec exec, CUgraphNode handle, CUgraph child) {
    ExecNode* node = find(exec, handle, CU_GRAPH_NODE_TYPE_GRAPH);
    const Graph* graph = graphs.find(child);
    if (node == nullptr || graph == nullptr || !graph->can_be_copied())
        return CUDA_ERROR_INVALID_VALUE;
    const std::vector<ExecNode> from = exec_nodes(*graph);
    CUSLICE_TRY(take_over(node->children, from, true));
    node->objects = std::make_shared<const HeldObjects>(graph->objects);
    return take_over(node->children, from, false);
}

CUresult set_any(CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams& params) {
    switch (params.type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            return set(exec, node, params.type, params.kernel);
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            return set(exec, node, params.type, params.memcpy.copyParams, params.memcpy.copyCtx);
        case CU_GRAPH_NODE_TYPE_MEMSET:
            return set(exec, node, params.type, params.memset);
        case CU_GRAPH_NODE_TYPE_HOST:
            return set(exec, node, params.type, params.host.fn, params.host.userData);
        case CU_GRAPH_NODE_TYPE_GRAPH:
            return set_child(exec, node, params.graph.graph);
        default:
            CUSLICE_UNSUPPORTED("cuGraphExecNodeSetParams of such a node");
    }
}

}  // namespace

CUSLICE_ENTRY(cuGraphExecKernelNodeSetParams, exec, node, params) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE : set(exec, node, CU_GRAPH_NODE_TYPE_KERNEL, newest(*params));
}

CUSLICE_ENTRY(cuGraphExecKernelNodeSetParams_v2, exec, node, params) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE : set(exec, node, CU_GRAPH_NODE_TYPE_KERNEL, newest(*params));
}

CUSLICE_ENTRY(cuGraphExecMemcpyNodeSetParams, exec, node, copy, context) {
    return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : set(exec, node, CU_GRAPH_NODE_TYPE_MEMCPY, *copy, context);
}

CUSLICE_ENTRY(cuGraphExecMemsetNodeSetParams, exec, node, params, context) {
    if (params == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    return set(exec, node, CU_GRAPH_NODE_TYPE_MEMSET, newest(*params, context));
}

CUSLICE_ENTRY(cuGraphExecHostNodeSetParams, exec, node, params) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE
                             : set(exec, node, CU_GRAPH_NODE_TYPE_HOST, params->fn, params->userData);
}

CUSLICE_ENTRY(cuGraphExecChildGraphNodeSetParams, exec, node, child) { return set_child(exec, node, child); }

CUSLICE_ENTRY(cuGraphExecNodeSetParams, exec, node, params) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE : set_any(exec, node, *params);
}
