// SPDX-License-Identifier: Apache-2.0
#pragma once
// Graphs as programs and captures make them: nodes with their work, and what each depends on.

#include <cstddef>
#include <memory>
#include <vector>

#include "fake/driver/cuda_api.h"
#include "fake/driver/graph_dependencies.h"
#include "fake/driver/graph_work.h"
#include "fake/driver/handles.h"
#include "fake/driver/user_object.h"

namespace cuslice::fake {

struct GraphBlock;
struct Graph;
struct ConditionalBodies;
struct GraphNode {
    NodeWork work;
    CUgraph graph = nullptr;
    Dependencies after;
    std::shared_ptr<GraphBlock> memory = nullptr;         // that it allocates or frees
    CUgraph child = nullptr;                              // of a child graph's node: its own copy
    std::shared_ptr<ConditionalBodies> bodies = nullptr;  // of a conditional node
    CUgraphNode original = nullptr;                       // in a copy of a graph: the node that this one copies
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
    std::vector<CUgraphNode> nodes;  // in the order in which they were made
    bool has_memory = false;
    std::weak_ptr<void> instance;  // the one that it has now; looked at if it has memory nodes
    HeldObjects objects;
    bool is_child = false;     // a node's own, which ends with it
    CUgraph around = nullptr;  // of a conditional node's body: the graph with the node
    std::vector<Condition> conditions;

    /// Documented: no copy can be made of one with nodes of memory or conditions.
    bool can_be_copied() const;
    /// True if the other graph is a child of this one, or of a child.
    bool contains(CUgraph other) const;
};

inline constinit HandleTable<Graph, CUgraph, HandleKind::Graph> graphs;
inline constinit HandleTable<GraphNode, CUgraphNode, HandleKind::GraphNode> graph_nodes;

/// Arrays of a program's that name dependencies; `edges` is null where none has data.
struct GivenDependencies {
    const CUgraphNode* nodes;
    const CUgraphEdgeData* edges;
    size_t count;
};

/// CUDA_ERROR_INVALID_VALUE unless an edge from this node can have such data.
CUresult check_edge(CUgraphNode from, const CUgraphEdgeData& edge);
/// Takes them if the graph is one, all are nodes of it and none is there twice; else CUDA_ERROR_INVALID_VALUE.
CUresult take_dependencies(CUgraph graph, const GivenDependencies& given, Dependencies& out);

/// Appends a node; null if the graph is gone.
CUgraphNode append_node(CUgraph graph, GraphNode node);
bool is_node_of(CUgraph graph, CUgraphNode node);
/// The nodes in an order in which each comes after what it depends on, as they were made where that is one; fewer than
/// there are if some depend on each other.
std::vector<CUgraphNode> nodes_in_order(const Graph& graph);
/// A copy of a graph that can be copied; null if there is no such graph.
CUgraph clone_graph(CUgraph graph);
/// Takes a node out of its graph and ends it, with its child graph or its bodies.
void destroy_node(CUgraphNode node);
/// Ends a graph, its nodes and their child graphs; false if the handle is none.
bool destroy_graph(CUgraph graph);

}  // namespace cuslice::fake
