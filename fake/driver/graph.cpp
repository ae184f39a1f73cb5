#include "fake/driver/graph.h"

namespace cuslice::fake {

constinit GraphTable graphs;
constinit GraphNodeTable graph_nodes;
constinit GraphExecTable graph_execs;

bool append_node(CUgraph handle, NodeType type, Task task, std::shared_ptr<GraphBlock> memory) {
    Graph* graph = graphs.find(handle);
    if (graph == nullptr) return false;
    const auto [node_handle, node] = graph_nodes.create();
    node->type = type;
    node->task = std::move(task);
    node->graph = handle;
    graph->has_memory = graph->has_memory || memory != nullptr;
    node->memory = std::move(memory);
    graph->nodes.push_back(node_handle);
    return true;
}

CUresult check_dependencies(CUgraph handle, const CUgraphNode* nodes, std::size_t count) {
    if (graphs.find(handle) == nullptr || (count > 0 && nodes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < count; i++) {
        const GraphNode* node = graph_nodes.find(nodes[i]);
        if (node == nullptr || node->graph != handle) return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

bool destroy_graph(CUgraph handle) {
    Graph* graph = graphs.find(handle);
    if (graph == nullptr) return false;
    for (CUgraphNode node : graph->nodes) graph_nodes.destroy(node);
    return graphs.destroy(handle);
}

}  // namespace cuslice::fake
