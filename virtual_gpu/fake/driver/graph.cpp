#include "virtual_gpu/fake/driver/graph.h"

namespace cuslice::fake {

constinit GraphTable graphs;
constinit GraphNodeTable graph_nodes;
constinit GraphExecTable graph_execs;

bool append_node(CUgraph handle, NodeType type, Task task) {
    Graph* graph = graphs.find(handle);
    if (graph == nullptr) return false;
    const auto [node_handle, node] = graph_nodes.create();
    node->type = type;
    node->task = std::move(task);
    node->graph = handle;
    graph->nodes.push_back(node_handle);
    return true;
}

bool destroy_graph(CUgraph handle) {
    Graph* graph = graphs.find(handle);
    if (graph == nullptr) return false;
    for (CUgraphNode node : graph->nodes) graph_nodes.destroy(node);
    return graphs.destroy(handle);
}

}  // namespace cuslice::fake
