// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/graph_conditional.h"

#include <algorithm>
#include <atomic>
#include <iterator>

#include "fake/driver/api_prologue.h"
#include "fake/driver/context.h"

namespace cuslice::fake {

namespace {

/// A handle belongs to a graph, and to the bodies in it.
Condition* find_condition(CUgraph handle, CUgraphConditionalHandle wanted) {
    for (Graph* graph = graphs.find(handle); graph != nullptr; graph = graphs.find(graph->around)) {
        const auto is_wanted = [&](const Condition& one) { return one.handle == wanted; };
        const auto found = std::find_if(graph->conditions.begin(), graph->conditions.end(), is_wanted);
        if (found != graph->conditions.end())
            return &*found;
    }
    return nullptr;
}

bool can_have(CUgraphConditionalNodeType type, unsigned size) {
    switch (type) {
        case CU_GRAPH_COND_TYPE_IF:
            return size == 1 || size == 2;
        case CU_GRAPH_COND_TYPE_WHILE:
            return size == 1;
        case CU_GRAPH_COND_TYPE_SWITCH:
            return size > 0;
        default:
            return false;
    }
}

int choose(CUgraphConditionalNodeType type, unsigned size, unsigned value) {
    unsigned body = value;  // of a switch
    if (type != CU_GRAPH_COND_TYPE_SWITCH)
        body = value != 0 ? 0 : 1;
    return body < size ? static_cast<int>(body) : ConditionalBodies::kNone;
}

bool may_be_in_body(NodeType type) {
    constexpr NodeType kAllowed[] = {CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_EMPTY,
                                     CU_GRAPH_NODE_TYPE_GRAPH,  CU_GRAPH_NODE_TYPE_MEMSET,
                                     CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_CONDITIONAL};
    return std::find(std::begin(kAllowed), std::end(kAllowed), type) != std::end(kAllowed);
}

bool can_be_body(const Graph& graph) {
    return std::all_of(graph.nodes.begin(), graph.nodes.end(), [](CUgraphNode handle) {
        const GraphNode& node = *graph_nodes.find(handle);
        const bool child_can = node.child == nullptr || can_be_body(*graphs.find(node.child));
        return child_can && may_be_in_body(node.work.type);
    });
}

}  // namespace

CUresult make_bodies(CUgraph graph, CUDA_CONDITIONAL_NODE_PARAMS& params, std::shared_ptr<ConditionalBodies>& out) {
    Condition* const condition = find_condition(graph, params.handle);
    const bool fits = condition != nullptr && !condition->has_node && condition->context == params.ctx;
    if (!fits || !can_have(params.type, params.size))
        return CUDA_ERROR_INVALID_VALUE;
    condition->has_node = true;
    out = std::make_shared<ConditionalBodies>();
    out->handle = params.handle;
    out->chosen = choose(params.type, params.size, condition->value);
    for (unsigned i = 0; i < params.size; i++) {
        const auto [handle, body] = graphs.create();
        body->is_child = true;
        body->around = graph;
        out->graphs.push_back(handle);
    }
    params.phGraph_out = out->graphs.data();
    return CUDA_SUCCESS;
}

void give_up_condition(CUgraph graph, const ConditionalBodies& bodies) {
    if (Condition* const condition = find_condition(graph, bodies.handle); condition != nullptr)
        condition->has_node = false;
}

CUresult check_conditional_nodes(const Graph& graph) {
    if (has_unused_condition(graph))
        return CUDA_ERROR_INVALID_VALUE;
    for (const CUgraphNode handle : graph.nodes) {
        const GraphNode& node = *graph_nodes.find(handle);
        if (node.bodies == nullptr)
            continue;
        for (const CUgraph body : node.bodies->graphs) {
            if (!can_be_body(*graphs.find(body)))
                return CUDA_ERROR_NOT_SUPPORTED;
            CUSLICE_TRY(check_conditional_nodes(*graphs.find(body)));
        }
    }
    return CUDA_SUCCESS;
}

bool has_unused_condition(const Graph& graph) {
    return std::any_of(graph.conditions.begin(), graph.conditions.end(),
                       [](const Condition& one) { return !one.has_node; });
}

CUresult make_condition(CUgraph handle, CUcontext context, unsigned value, unsigned flags,
                        CUgraphConditionalHandle* out) {
    CUSLICE_FIND_ARGUMENT(graph, graphs, handle);
    if (out == nullptr || live_context(context) == nullptr || (flags & ~CU_GRAPH_COND_ASSIGN_DEFAULT) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    // Documented: a value without CU_GRAPH_COND_ASSIGN_DEFAULT is unspecified at a launch.
    static constinit std::atomic<CUgraphConditionalHandle> last{0};
    *out = ++last;
    graph->conditions.push_back({*out, context, (flags & CU_GRAPH_COND_ASSIGN_DEFAULT) != 0 ? value : 0});
    return CUDA_SUCCESS;
}

}  // namespace cuslice::fake
