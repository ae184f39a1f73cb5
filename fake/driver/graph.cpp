// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/graph.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>
#include <utility>

#include "fake/driver/api_prologue.h"
#include "fake/driver/zero.h"

namespace cuslice::fake {

namespace {

void end_node(CUgraphNode node) {
    const GraphNode& gone = *graph_nodes.find(node);
    if (gone.child != nullptr)
        destroy_graph(gone.child);
    if (gone.bodies != nullptr)
        std::for_each(gone.bodies->graphs.begin(), gone.bodies->graphs.end(), destroy_graph);
    graph_nodes.destroy(node);
}

/// The edges of a graph by its nodes' indices.
struct Indexed {
    std::vector<std::vector<size_t>> dependents;
    std::vector<size_t> waits_for;  // so many edges lead to the node

    explicit Indexed(const Graph& graph) : dependents(graph.nodes.size()), waits_for(graph.nodes.size()) {
        std::unordered_map<CUgraphNode, size_t> index;
        for (size_t i = 0; i < graph.nodes.size(); i++)
            index[graph.nodes[i]] = i;
        for (size_t i = 0; i < graph.nodes.size(); i++) {
            for (const CUgraphNode from : graph_nodes.find(graph.nodes[i])->after.nodes)
                dependents[index.at(from)].push_back(i), waits_for[i]++;
        }
    }
};

}  // namespace

CUgraphNode append_node(CUgraph handle, GraphNode node) {
    Graph* const graph = graphs.find(handle);
    if (graph == nullptr)
        return nullptr;
    node.graph = handle;
    graph->has_memory = graph->has_memory || node.memory != nullptr;
    const CUgraphNode made = graph_nodes.create(std::move(node)).first;
    graph->nodes.push_back(made);
    return made;
}

bool is_node_of(CUgraph graph, CUgraphNode handle) {
    const GraphNode* const node = graph_nodes.find(handle);
    return node != nullptr && node->graph == graph;
}

CUresult check_edge(CUgraphNode from, const CUgraphEdgeData& edge) {
    if (!all_zero(edge.reserved) || edge.to_port != 0 || edge.type > CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC ||
        edge.from_port > CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER)
        return CUDA_ERROR_INVALID_VALUE;
    // Documented: only kernels have ports but 0, and programmatic dependencies.
    const bool of_kernels = edge.from_port != 0 || edge.type != 0;
    return of_kernels && graph_nodes.find(from)->work.type != CU_GRAPH_NODE_TYPE_KERNEL ? CUDA_ERROR_INVALID_VALUE
                                                                                        : CUDA_SUCCESS;
}

CUresult take_dependencies(CUgraph graph, const GivenDependencies& given, Dependencies& out) {
    if (graphs.find(graph) == nullptr || (given.count > 0 && given.nodes == nullptr))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < given.count; i++) {
        const CUgraphEdgeData edge = given.edges != nullptr ? given.edges[i] : CUgraphEdgeData{};
        if (!is_node_of(graph, given.nodes[i]) || out.has(given.nodes[i], edge))
            return CUDA_ERROR_INVALID_VALUE;
        CUSLICE_TRY(check_edge(given.nodes[i], edge));
        out.add(given.nodes[i], edge);
    }
    return CUDA_SUCCESS;
}

std::vector<CUgraphNode> nodes_in_order(const Graph& graph) {
    Indexed edges(graph);
    std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
    for (size_t i = 0; i < graph.nodes.size(); i++) {
        if (edges.waits_for[i] == 0)
            ready.push(i);
    }
    std::vector<CUgraphNode> order;
    while (!ready.empty()) {
        const size_t next = ready.top();
        ready.pop();
        order.push_back(graph.nodes[next]);
        for (const size_t dependent : edges.dependents[next]) {
            if (--edges.waits_for[dependent] == 0)
                ready.push(dependent);
        }
    }
    return order;
}

CUgraph clone_graph(CUgraph handle) {
    const Graph* graph = graphs.find(handle);
    if (graph == nullptr || !graph->can_be_copied())
        return nullptr;
    const CUgraph clone = graphs.create(Graph{{}, false, {}, graph->objects}).first;
    std::unordered_map<CUgraphNode, CUgraphNode> copies;
    for (const CUgraphNode node : graph->nodes) {
        const GraphNode& from = *graph_nodes.find(node);
        const CUgraphNode copy = append_node(clone, {.work = from.work, .original = node});
        copies[node] = copy;
        if (from.child == nullptr)
            continue;
        const CUgraph child = clone_graph(from.child);
        graphs.find(child)->is_child = true;
        graph_nodes.find(copy)->child = child;
    }
    for (const auto& [node, copy] : copies) {
        Dependencies after = graph_nodes.find(node)->after;
        for (CUgraphNode& from : after.nodes)
            from = copies.at(from);
        graph_nodes.find(copy)->after = std::move(after);
    }
    return clone;
}

bool Graph::can_be_copied() const {
    const auto can_be = [](CUgraphNode handle) {
        const GraphNode& node = *graph_nodes.find(handle);
        return node.bodies == nullptr && (node.child == nullptr || graphs.find(node.child)->can_be_copied());
    };
    return !has_memory && std::all_of(nodes.begin(), nodes.end(), can_be);
}

bool Graph::contains(CUgraph other) const {
    return std::any_of(nodes.begin(), nodes.end(), [other](CUgraphNode handle) {
        const CUgraph child = graph_nodes.find(handle)->child;
        return child != nullptr && (child == other || graphs.find(child)->contains(other));
    });
}

void destroy_node(CUgraphNode node) {
    Graph& graph = *graphs.find(graph_nodes.find(node)->graph);
    std::erase(graph.nodes, node);
    for (const CUgraphNode other : graph.nodes)
        graph_nodes.find(other)->after.remove(node);
    end_node(node);
}

bool destroy_graph(CUgraph handle) {
    Graph* graph = graphs.find(handle);
    if (graph == nullptr)
        return false;
    std::for_each(graph->nodes.begin(), graph->nodes.end(), end_node);
    return graphs.destroy(handle);
}

}  // namespace cuslice::fake
