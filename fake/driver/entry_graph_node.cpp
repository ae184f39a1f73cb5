// SPDX-License-Identifier: Apache-2.0
// Nodes that a program adds to a graph one by one. They run in the order in which they are added, in which each comes
// after what it depends on.

#include <algorithm>

#include "fake/driver/api_prologue.h"
#include "fake/driver/graph_conditional.h"
#include "fake/driver/graph_tasks.h"

using namespace cuslice::fake;

namespace {

/// Where a node goes: its graph, what it depends on, and what its handle is written to.
struct Place {
    CUgraphNode* out;
    CUgraph graph;
    const CUgraphNode* dependencies;
    size_t count;
};

CUresult check_place(const Place& place) {
    return place.out == nullptr ? CUDA_ERROR_INVALID_VALUE
                                : check_dependencies(place.graph, place.dependencies, place.count);
}

CUresult add(const Place& place, NodeType type, Task task) {
    *place.out = append_node(place.graph, type, std::move(task));
    return CUDA_SUCCESS;
}

/// Adds a node whose task is made of parameters as make_task() takes them.
template <typename... Parameters>
CUresult add_made(const Place& place, NodeType type, const Parameters&... parameters) {
    Task task;
    CUSLICE_TRY(check_place(place));
    CUSLICE_TRY(make_task(parameters..., task));
    return add(place, type, std::move(task));
}

CUresult add_child(const Place& place, CUgraph child, bool moved) {
    CUSLICE_TRY(check_place(place));
    CUSLICE_FIND_ARGUMENT(graph, graphs, child);
    if (graph->is_child || child == place.graph)
        return CUDA_ERROR_INVALID_VALUE;
    // Documented: only a graph that is moved may have nodes of memory or conditions.
    if (!graph->can_be_copied()) {
        if (!moved)
            return CUDA_ERROR_NOT_SUPPORTED;
        CUSLICE_UNSUPPORTED("a child graph with nodes of memory or conditions");
    }
    const CUgraph own = moved ? child : clone_graph(child);
    graphs.find(own)->is_child = true;
    add(place, CU_GRAPH_NODE_TYPE_GRAPH, [] {});
    graph_nodes.find(*place.out)->child = own;
    return CUDA_SUCCESS;
}

template <typename Parameters>
CUresult add_kernel(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                    const Parameters* params) {
    if (params == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    return add_made({out, graph, dependencies, count}, CU_GRAPH_NODE_TYPE_KERNEL, newest(*params));
}

bool all_zero(const void* bytes, size_t size) {
    const auto* at = static_cast<const unsigned char*>(bytes);
    return std::all_of(at, at + size, [](unsigned char byte) { return byte == 0; });
}

/// Nodes run one after the other, so that an edge which lets the next one start early holds in any case.
CUresult check_edges(const Place& place, const CUgraphEdgeData* edges) {
    if (edges == nullptr)
        return CUDA_SUCCESS;
    for (size_t i = 0; i < place.count; i++) {
        const CUgraphEdgeData& edge = edges[i];
        if (edge.to_port != 0 || edge.type > CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC ||
            edge.from_port > CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER || !all_zero(edge.reserved, sizeof edge.reserved))
            return CUDA_ERROR_INVALID_VALUE;
        // Documented: only kernels have ports but 0, and programmatic dependencies.
        if ((edge.from_port != 0 || edge.type != 0) &&
            graph_nodes.find(place.dependencies[i])->type != CU_GRAPH_NODE_TYPE_KERNEL)
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult add_any(const Place& place, const CUgraphEdgeData* edges, CUgraphNodeParams* params) {
    if (params == nullptr || params->reserved2 != 0 || !all_zero(params->reserved0, sizeof params->reserved0))
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_TRY(check_place(place));
    CUSLICE_TRY(check_edges(place, edges));
    switch (params->type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            return add_made(place, params->type, params->kernel);
        case CU_GRAPH_NODE_TYPE_MEMCPY: {
            const CUDA_MEMCPY_NODE_PARAMS& copy = params->memcpy;
            if (copy.flags != 0 || copy.reserved != 0)
                return CUDA_ERROR_INVALID_VALUE;
            return add_made(place, params->type, copy.copyParams, copy.copyCtx);
        }
        case CU_GRAPH_NODE_TYPE_MEMSET:
            return add_made(place, params->type, params->memset);
        case CU_GRAPH_NODE_TYPE_HOST:
            return add_made(place, params->type, params->host.fn, params->host.userData);
        case CU_GRAPH_NODE_TYPE_EMPTY:
            return add(place, CU_GRAPH_NODE_TYPE_EMPTY, [] {});
        case CU_GRAPH_NODE_TYPE_GRAPH:
            if (static_cast<unsigned>(params->graph.ownership) > CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
                return CUDA_ERROR_INVALID_VALUE;
            return add_child(place, params->graph.graph,
                             params->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE);
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
            auto& alloc = reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS_v1&>(params->alloc);
            static_assert(sizeof alloc == sizeof params->alloc);
            return cuGraphAddMemAllocNode(place.out, place.graph, place.dependencies, place.count, &alloc);
        }
        case CU_GRAPH_NODE_TYPE_MEM_FREE:
            return cuGraphAddMemFreeNode(place.out, place.graph, place.dependencies, place.count, params->free.dptr);
        case CU_GRAPH_NODE_TYPE_CONDITIONAL: {
            std::shared_ptr<ConditionalBodies> bodies;
            CUSLICE_TRY(make_bodies(place.graph, params->conditional, bodies));
            add(place, CU_GRAPH_NODE_TYPE_CONDITIONAL, [] {});
            graph_nodes.find(*place.out)->bodies = std::move(bodies);
            return CUDA_SUCCESS;
        }
        default:
            CUSLICE_UNSUPPORTED("cuGraphAddNode of events, semaphores and memory operations");
    }
}

}  // namespace

CUSLICE_ENTRY_PAIR(cuGraphAddKernelNode, add_kernel, out, graph, dependencies, count, params)

CUSLICE_ENTRY(cuGraphAddMemcpyNode, out, graph, dependencies, count, copy, context) {
    if (copy == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    return add_made({out, graph, dependencies, count}, CU_GRAPH_NODE_TYPE_MEMCPY, *copy, context);
}

CUSLICE_ENTRY(cuGraphAddMemsetNode, out, graph, dependencies, count, params, context) {
    if (params == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    return add_made({out, graph, dependencies, count}, CU_GRAPH_NODE_TYPE_MEMSET, newest(*params, context));
}

CUSLICE_ENTRY(cuGraphAddHostNode, out, graph, dependencies, count, params) {
    if (params == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    return add_made({out, graph, dependencies, count}, CU_GRAPH_NODE_TYPE_HOST, params->fn, params->userData);
}

CUSLICE_ENTRY(cuGraphAddChildGraphNode, out, graph, dependencies, count, child) {
    return add_child({out, graph, dependencies, count}, child, false);
}

CUSLICE_ENTRY(cuGraphChildGraphNodeGetGraph, handle, child) {
    CUSLICE_FIND_ARGUMENT(node, graph_nodes, handle);
    if (child == nullptr || node->child == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    *child = node->child;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuGraphDestroyNode, handle) {
    CUSLICE_FIND_ARGUMENT(node, graph_nodes, handle);
    // Documented: a graph with nodes of memory keeps its nodes. With which error is not.
    if (graphs.find(node->graph)->has_memory)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (node->bodies != nullptr)
        give_up_condition(node->graph, *node->bodies);
    destroy_node(handle);
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuGraphConditionalHandleCreate, out, graph, context, value, flags) {
    return make_condition(graph, context, value, flags, out);
}

CUSLICE_ENTRY(cuGraphAddNode, out, graph, dependencies, count, params) {
    return add_any({out, graph, dependencies, count}, nullptr, params);
}

CUSLICE_ENTRY(cuGraphAddNode_v2, out, graph, dependencies, edges, count, params) {
    return add_any({out, graph, dependencies, count}, edges, params);
}
