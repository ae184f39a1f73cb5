// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/graph_exec.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace cuslice::fake {

namespace {

constexpr size_t kUnpaired = ~size_t{0};

void take_child(ExecNode& node, CUgraph handle) {
    const Graph& child = *graphs.find(handle);
    node.children = exec_nodes(child);
    node.objects = std::make_shared<const HeldObjects>(child.objects);
}

/// Nodes that no other depends on.
std::vector<size_t> exits(const std::vector<ExecNode>& nodes) {
    std::vector<bool> followed(nodes.size());
    for (const ExecNode& node : nodes) {
        for (const size_t before : node.after)
            followed[before] = true;
    }
    std::vector<size_t> found;
    for (size_t i = 0; i < nodes.size(); i++) {
        if (!followed[i])
            found.push_back(i);
    }
    return found;
}

CUgraphExecUpdateResultInfo changed(CUgraphExecUpdateResult how, CUgraphNode node, CUgraphNode from = nullptr) {
    return {how, node, from};
}

constexpr CUgraphExecUpdateResultInfo kSame{CU_GRAPH_EXEC_UPDATE_SUCCESS, nullptr, nullptr};

/// Pairs the nodes of an instance with those of a graph as cuGraphExecUpdate documents: exits in their order, then what
/// they depend on, edge by edge.
class Pairing {
  public:
    Pairing(const std::vector<ExecNode>& nodes, const std::vector<ExecNode>& from)
        : nodes_(nodes), from_(from), partner_(nodes.size(), kUnpaired), is_partner_(from.size()) {}

    CUgraphExecUpdateResultInfo make() {
        if (nodes_.size() != from_.size())
            return changed(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr);
        const std::vector<size_t> ours = exits(nodes_), theirs = exits(from_);
        if (ours.size() != theirs.size())
            return changed(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, from_[theirs.back()].node);
        for (size_t i = 0; i < ours.size(); i++)
            pair(ours[i], theirs[i]);
        while (!open_.empty()) {
            const size_t node = open_.back();
            open_.pop_back();
            const CUgraphExecUpdateResultInfo result = pair_dependencies(node);
            if (result.result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
                return result;
        }
        return kSame;
    }

    size_t partner(size_t node) const { return partner_[node]; }

  private:
    void pair(size_t node, size_t other) {
        partner_[node] = other;
        is_partner_[other] = true;
        open_.push_back(node);
    }

    CUgraphExecUpdateResultInfo pair_dependencies(size_t node) {
        const ExecNode& ours = nodes_[node];
        const ExecNode& theirs = from_[partner_[node]];
        if (ours.after.size() != theirs.after.size())
            return changed(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, theirs.node);
        for (size_t i = 0; i < ours.after.size(); i++) {
            const size_t before = ours.after[i], other = theirs.after[i];
            if (partner_[before] == other)
                continue;
            if (partner_[before] != kUnpaired || is_partner_[other])
                return changed(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, theirs.node, from_[other].node);
            pair(before, other);
        }
        return kSame;
    }

    const std::vector<ExecNode>&nodes_, &from_;
    std::vector<size_t> partner_, open_;
    std::vector<bool> is_partner_;
};

CUgraphExecUpdateResultInfo take_over(std::vector<ExecNode>& nodes, const std::vector<ExecNode>& from, bool only_look) {
    Pairing pairing(nodes, from);
    if (const auto result = pairing.make(); result.result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
        return result;
    for (size_t i = 0; i < nodes.size(); i++) {
        const ExecNode& other = from[pairing.partner(i)];
        if (nodes[i].work.type != other.work.type)
            return changed(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, other.node);
        if (nodes[i].memory != other.memory)
            return changed(CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, other.node);
        if (!same_owner(nodes[i].work, other.work))
            return changed(CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE, other.node);
        const auto result = take_over(nodes[i].children, other.children, only_look);
        if (result.result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
            return result;
        if (only_look)
            continue;
        nodes[i].work = other.work;
        nodes[i].objects = other.objects;
        nodes[i].chosen = other.chosen;
    }
    return kSame;
}

}  // namespace

std::vector<ExecNode> exec_nodes(const Graph& graph) {
    std::vector<ExecNode> nodes;
    std::unordered_map<CUgraphNode, size_t> index;
    for (const CUgraphNode handle : nodes_in_order(graph)) {
        const GraphNode& from = *graph_nodes.find(handle);
        index[handle] = nodes.size();
        nodes.push_back({from.work, from.memory, handle});
        for (const CUgraphNode before : from.after.nodes)
            nodes.back().after.push_back(index.at(before));
        if (from.child != nullptr)
            take_child(nodes.back(), from.child);
        if (from.bodies == nullptr)
            continue;
        nodes.back().chosen = from.bodies->chosen;
        for (const CUgraph body : from.bodies->graphs) {
            nodes.back().children.push_back({{CU_GRAPH_NODE_TYPE_GRAPH}});
            take_child(nodes.back().children.back(), body);
        }
    }
    return nodes;
}

CUgraphExecUpdateResultInfo update_nodes(std::vector<ExecNode>& nodes, const std::vector<ExecNode>& from) {
    const CUgraphExecUpdateResultInfo result = take_over(nodes, from, true);
    return result.result == CU_GRAPH_EXEC_UPDATE_SUCCESS ? take_over(nodes, from, false) : result;
}

}  // namespace cuslice::fake
