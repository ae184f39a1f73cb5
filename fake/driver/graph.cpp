// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/graph.h"

#include <algorithm>

namespace cuslice::fake {

namespace {

void take_child(ExecNode& node, CUgraph handle) {
    const Graph& child = *graphs.find(handle);
    node.children = exec_nodes(child);
    node.objects = std::make_shared<const HeldObjects>(child.objects);
}

void end_node(CUgraphNode node) {
    const GraphNode& gone = *graph_nodes.find(node);
    if (gone.child != nullptr)
        destroy_graph(gone.child);
    if (gone.bodies != nullptr)
        std::for_each(gone.bodies->graphs.begin(), gone.bodies->graphs.end(), destroy_graph);
    graph_nodes.destroy(node);
}

}  // namespace

CUgraphNode append_node(CUgraph handle, NodeType type, Task task, std::shared_ptr<GraphBlock> memory) {
    Graph* graph = graphs.find(handle);
    if (graph == nullptr)
        return nullptr;
    const auto [node_handle, node] = graph_nodes.create();
    node->type = type;
    node->task = std::move(task);
    node->graph = handle;
    graph->has_memory = graph->has_memory || memory != nullptr;
    node->memory = std::move(memory);
    graph->nodes.push_back(node_handle);
    return node_handle;
}

CUresult check_dependencies(CUgraph handle, const CUgraphNode* nodes, size_t count) {
    if (graphs.find(handle) == nullptr || (count > 0 && nodes == nullptr))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        const GraphNode* node = graph_nodes.find(nodes[i]);
        if (node == nullptr || node->graph != handle)
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

std::vector<ExecNode> exec_nodes(const Graph& graph) {
    std::vector<ExecNode> nodes;
    for (const CUgraphNode handle : graph.nodes) {
        const GraphNode& from = *graph_nodes.find(handle);
        nodes.push_back({from.type, from.task, from.memory, handle});
        if (from.child != nullptr)
            take_child(nodes.back(), from.child);
        if (from.bodies == nullptr)
            continue;
        nodes.back().chosen = from.bodies->chosen;
        for (const CUgraph body : from.bodies->graphs) {
            nodes.back().children.push_back({CU_GRAPH_NODE_TYPE_GRAPH, [] {}, nullptr});
            take_child(nodes.back().children.back(), body);
        }
    }
    return nodes;
}

CUgraph clone_graph(CUgraph handle) {
    const Graph* graph = graphs.find(handle);
    if (graph == nullptr || !graph->can_be_copied())
        return nullptr;
    const CUgraph clone = graphs.create(Graph{{}, false, {}, graph->objects}).first;
    for (const CUgraphNode node : graph->nodes) {
        const GraphNode& from = *graph_nodes.find(node);
        const CUgraphNode copy = append_node(clone, from.type, from.task);
        if (from.child == nullptr)
            continue;
        const CUgraph child = clone_graph(from.child);
        graphs.find(child)->is_child = true;
        graph_nodes.find(copy)->child = child;
    }
    return clone;
}

bool Graph::can_be_copied() const {
    const auto has_bodies = [](CUgraphNode node) { return graph_nodes.find(node)->bodies != nullptr; };
    return !has_memory && std::none_of(nodes.begin(), nodes.end(), has_bodies);
}

void destroy_node(CUgraphNode node) {
    std::erase(graphs.find(graph_nodes.find(node)->graph)->nodes, node);
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
