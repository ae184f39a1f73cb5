// SPDX-License-Identifier: Apache-2.0
#pragma once
// Instances of graphs: copies of their nodes' work, which the graph's end does not touch.

#include <cstddef>
#include <memory>
#include <vector>

#include "fake/driver/graph.h"

namespace cuslice::fake {

struct ExecNode {
    NodeWork work;
    std::shared_ptr<GraphBlock> memory = nullptr;
    CUgraphNode node = nullptr;      // that it was made from: only a handle
    std::vector<size_t> after = {};  // indices of those that it depends on
    std::vector<ExecNode> children = {};
    std::shared_ptr<const HeldObjects> objects = nullptr;  // of the child graph
    int chosen = ConditionalBodies::kNone;                 // of a conditional node: which of its children runs
    bool enabled = true;
};

struct GraphExec {
    std::vector<ExecNode> nodes;  // in the order in which they run
    unsigned long long flags = 0;
    bool has_memory = false;
    std::shared_ptr<void> instance;
    std::shared_ptr<const HeldObjects> objects;  // a launch holds them as well
};

inline constinit HandleTable<GraphExec, CUgraphExec, HandleKind::GraphExec> graph_execs;

/// Copies the nodes of a graph for an instance, those of child graphs included. No nodes depend on each other.
std::vector<ExecNode> exec_nodes(const Graph& graph);

/// Gives an instance's nodes the work of others that are the same but for their parameters; nothing is changed if they
/// aren't. The result says why not, and of which node.
CUgraphExecUpdateResultInfo update_nodes(std::vector<ExecNode>& nodes, const std::vector<ExecNode>& from);

}  // namespace cuslice::fake
