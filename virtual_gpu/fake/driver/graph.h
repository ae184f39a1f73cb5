#pragma once
// Graphs as captures make them: the tasks of their nodes, in order.

#include <functional>
#include <memory>
#include <vector>

#include "virtual_gpu/fake/driver/cuda_api.h"
#include "virtual_gpu/fake/driver/handles.h"
#include "virtual_gpu/fake/driver/lane.h"

namespace cuslice::fake {

using NodeType = CUgraphNodeType;

struct Graph;
struct GraphNode {
    NodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    Task task;
    CUgraph graph = nullptr;
};
using GraphNodeTable = HandleTable<GraphNode, CUgraphNode, HandleKind::GraphNode>;

struct Graph {
    std::vector<CUgraphNode> nodes;  // in the order in which they run
};
using GraphTable = HandleTable<Graph, CUgraph, HandleKind::Graph>;

/// An instantiated graph: a copy of the tasks, which the graph's end does not touch.
struct GraphExec {
    std::vector<std::pair<NodeType, Task>> tasks;
    unsigned long long flags = 0;
};
using GraphExecTable = HandleTable<GraphExec, CUgraphExec, HandleKind::GraphExec>;

extern GraphTable graphs;
extern GraphNodeTable graph_nodes;
extern GraphExecTable graph_execs;

/// Appends a node; false if the graph is gone.
bool append_node(CUgraph graph, NodeType type, Task task);
/// Ends a graph and its nodes; false if the handle is none.
bool destroy_graph(CUgraph graph);

}  // namespace cuslice::fake
