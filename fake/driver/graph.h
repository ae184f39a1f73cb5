// SPDX-License-Identifier: Apache-2.0
#pragma once
// Graphs as captures make them: the tasks of their nodes, in order.

#include <functional>
#include <memory>
#include <vector>

#include "fake/driver/cuda_api.h"
#include "fake/driver/handles.h"
#include "fake/driver/user_object.h"
#include "fake/driver/work_queue.h"

namespace cuslice::fake {

using NodeType = CUgraphNodeType;

struct GraphBlock;
struct Graph;
struct ConditionalBodies;
struct GraphNode {
    NodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    Task task;
    CUgraph graph = nullptr;
    std::shared_ptr<GraphBlock> memory;                   // that it allocates or frees
    CUgraph child = nullptr;                              // of a child graph's node: its own copy
    std::shared_ptr<ConditionalBodies> bodies = nullptr;  // of a conditional node
};

/// A value that conditional nodes go by. No kernel runs that would change it: it is the default in each launch.
struct Condition {
    CUgraphConditionalHandle handle;
    CUcontext context;
    unsigned value;
    bool has_node = false;
};

/// Graphs of a conditional node, which end with it, and which of them runs.
struct ConditionalBodies {
    CUgraphConditionalHandle handle = 0;
    std::vector<CUgraph> graphs;
    int chosen = kNone;

    static constexpr int kNone = -1;
};

struct Graph {
    std::vector<CUgraphNode> nodes;  // in the order in which they run
    bool has_memory = false;
    std::weak_ptr<void> instance;  // the one that it has now; looked at if it has memory nodes
    HeldObjects objects;
    bool is_child = false;     // a node's own, which ends with it
    CUgraph around = nullptr;  // of a conditional node's body: the graph with the node
    std::vector<Condition> conditions;

    /// Documented: no copy can be made of one with nodes of memory or conditions.
    bool can_be_copied() const;
};

struct ExecNode {
    NodeType type;
    Task task;
    std::shared_ptr<GraphBlock> memory;
    CUgraphNode node = nullptr;  // that it was made from: only a handle
    std::vector<ExecNode> children = {};
    std::shared_ptr<const HeldObjects> objects = nullptr;  // of the child graph
    int chosen = ConditionalBodies::kNone;                 // of a conditional node: which of its children runs
};

/// An instantiated graph: a copy of the tasks, which the graph's end does not touch.
struct GraphExec {
    std::vector<ExecNode> nodes;
    unsigned long long flags = 0;
    bool has_memory = false;
    std::shared_ptr<void> instance;
    std::shared_ptr<const HeldObjects> objects;  // a launch holds them as well
};

inline constinit HandleTable<Graph, CUgraph, HandleKind::Graph> graphs;
inline constinit HandleTable<GraphNode, CUgraphNode, HandleKind::GraphNode> graph_nodes;
inline constinit HandleTable<GraphExec, CUgraphExec, HandleKind::GraphExec> graph_execs;

/// Appends a node; null if the graph is gone.
CUgraphNode append_node(CUgraph graph, NodeType type, Task task, std::shared_ptr<GraphBlock> memory = nullptr);
/// CUDA_ERROR_INVALID_VALUE unless the graph is one and all of these are nodes of it.
CUresult check_dependencies(CUgraph graph, const CUgraphNode* nodes, size_t count);
/// Copies the nodes of a graph for an instance, those of child graphs included.
std::vector<ExecNode> exec_nodes(const Graph& graph);
/// A copy of a graph that can be copied; null if there is no such graph.
CUgraph clone_graph(CUgraph graph);
/// Takes a node out of its graph and ends it, with its child graph or its bodies.
void destroy_node(CUgraphNode node);
/// Ends a graph, its nodes and their child graphs; false if the handle is none.
bool destroy_graph(CUgraph graph);

}  // namespace cuslice::fake
