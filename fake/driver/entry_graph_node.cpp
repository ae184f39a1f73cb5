// SPDX-License-Identifier: Apache-2.0
// Nodes that a program adds to a graph one by one. Their parameters: entry_graph_node_params.cpp, and what they depend
// on: entry_graph_edges.cpp.

#include <utility>

#include "fake/driver/api_prologue.h"
#include "fake/driver/graph_conditional.h"
#include "fake/driver/graph_make_work.h"
#include "fake/driver/graph_memory.h"
#include "fake/driver/zero.h"

using namespace cuslice::fake;

namespace {

/// Where a node goes: its graph, what it depends on, and what its handle is written to.
struct Place {
    CUgraphNode* out;
    CUgraph graph;
    GivenDependencies dependencies;
};

CUresult check_place(const Place& place, Dependencies& after) {
    return place.out == nullptr ? CUDA_ERROR_INVALID_VALUE : take_dependencies(place.graph, place.dependencies, after);
}

CUresult add(const Place& place, const CUgraphNodeParams& params) {
    Dependencies after;
    NodeWork work;
    CUSLICE_TRY(check_place(place, after));
    CUSLICE_TRY(make_work(params, work));
    *place.out = append_node(place.graph, {.work = std::move(work), .after = std::move(after)});
    return CUDA_SUCCESS;
}

CUresult add_child(const Place& place, CUgraph child, bool moved) {
    Dependencies after;
    CUSLICE_TRY(check_place(place, after));
    CUSLICE_FIND_ARGUMENT(graph, graphs, child);
    if (graph->is_child || child == place.graph || (moved && graph->contains(place.graph)))
        return CUDA_ERROR_INVALID_VALUE;
    // Documented: only a graph that is moved may have nodes of memory or conditions.
    if (!graph->can_be_copied()) {
        if (!moved)
            return CUDA_ERROR_NOT_SUPPORTED;
        CUSLICE_UNSUPPORTED("a child graph with nodes of memory or conditions");
    }
    const CUgraph own = moved ? child : clone_graph(child);
    graphs.find(own)->is_child = true;
    *place.out =
        append_node(place.graph, {.work = {CU_GRAPH_NODE_TYPE_GRAPH}, .after = std::move(after), .child = own});
    return CUDA_SUCCESS;
}

CUresult add_conditional(const Place& place, CUDA_CONDITIONAL_NODE_PARAMS& params) {
    Dependencies after;
    std::shared_ptr<ConditionalBodies> bodies;
    CUSLICE_TRY(check_place(place, after));
    CUSLICE_TRY(make_bodies(place.graph, params, bodies));
    *place.out =
        append_node(place.graph,
                    {.work = {CU_GRAPH_NODE_TYPE_CONDITIONAL}, .after = std::move(after), .bodies = std::move(bodies)});
    return CUDA_SUCCESS;
}

template <typename Parameters>
CUresult add_kernel(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                    const Parameters* params) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE
                             : add({out, graph, {dependencies, nullptr, count}}, kernel_params(*params));
}

CUresult add_any(const Place& place, CUgraphNodeParams* params) {
    if (params == nullptr || params->reserved2 != 0 || !all_zero(params->reserved0))
        return CUDA_ERROR_INVALID_VALUE;
    switch (params->type) {
        case CU_GRAPH_NODE_TYPE_GRAPH:
            if (static_cast<unsigned>(params->graph.ownership) > CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
                return CUDA_ERROR_INVALID_VALUE;
            return add_child(place, params->graph.graph,
                             params->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE);
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
            auto& alloc = reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS_v1&>(params->alloc);
            static_assert(sizeof alloc == sizeof params->alloc);
            return add_allocation(place.graph, place.dependencies, &alloc, place.out);
        }
        case CU_GRAPH_NODE_TYPE_MEM_FREE:
            return add_free(place.graph, place.dependencies, params->free.dptr, place.out);
        case CU_GRAPH_NODE_TYPE_CONDITIONAL:
            return add_conditional(place, params->conditional);
        case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
        case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
        case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
            CUSLICE_UNSUPPORTED("cuGraphAddNode of semaphores and memory operations");
        default: {
            CUgraphNodeParams with_context = *params;
            CUSLICE_TRY(take_context(with_context));
            return add(place, with_context);
        }
    }
}

}  // namespace

CUSLICE_ENTRY_PAIR(cuGraphAddKernelNode, add_kernel, out, graph, dependencies, count, params)

CUSLICE_ENTRY(cuGraphAddEmptyNode, out, graph, dependencies, count) {
    return add({out, graph, {dependencies, nullptr, count}}, {.type = CU_GRAPH_NODE_TYPE_EMPTY});
}

CUSLICE_ENTRY(cuGraphAddMemcpyNode, out, graph, dependencies, count, copy, context) {
    return copy == nullptr ? CUDA_ERROR_INVALID_VALUE
                           : add({out, graph, {dependencies, nullptr, count}}, node_params(*copy, context));
}

CUSLICE_ENTRY(cuGraphAddMemsetNode, out, graph, dependencies, count, params, context) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE
                             : add({out, graph, {dependencies, nullptr, count}}, fill_params(*params, context));
}

CUSLICE_ENTRY(cuGraphAddHostNode, out, graph, dependencies, count, params) {
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE
                             : add({out, graph, {dependencies, nullptr, count}}, node_params(*params));
}

CUSLICE_ENTRY(cuGraphAddEventRecordNode, out, graph, dependencies, count, event) {
    return add({out, graph, {dependencies, nullptr, count}}, node_params(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event));
}

CUSLICE_ENTRY(cuGraphAddEventWaitNode, out, graph, dependencies, count, event) {
    return add({out, graph, {dependencies, nullptr, count}}, node_params(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event));
}

CUSLICE_ENTRY(cuGraphAddChildGraphNode, out, graph, dependencies, count, child) {
    return add_child({out, graph, {dependencies, nullptr, count}}, child, false);
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
    return add_any({out, graph, {dependencies, nullptr, count}}, params);
}

CUSLICE_ENTRY(cuGraphAddNode_v2, out, graph, dependencies, edges, count, params) {
    return add_any({out, graph, {dependencies, edges, count}}, params);
}
