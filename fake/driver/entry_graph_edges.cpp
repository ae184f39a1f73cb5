// SPDX-License-Identifier: Apache-2.0
// Edges between the nodes of a graph. The first forms know none with data; the second ones do.

#include <algorithm>
#include <vector>

#include "fake/driver/api_prologue.h"
#include "fake/driver/give.h"
#include "fake/driver/graph.h"

using namespace cuslice::fake;

namespace {

/// Edges from and to nodes, in parallel arrays.
struct Edges {
    std::vector<CUgraphNode> from, to;
    std::vector<CUgraphEdgeData> data;

    void add(CUgraphNode from_node, CUgraphNode to_node, const CUgraphEdgeData& edge) {
        from.push_back(from_node);
        to.push_back(to_node);
        data.push_back(edge);
    }
};

Edges edges_of(const Graph& graph) {
    Edges edges;
    for (const CUgraphNode to : graph.nodes) {
        const Dependencies& after = graph_nodes.find(to)->after;
        for (size_t i = 0; i < after.size(); i++)
            edges.add(after.nodes[i], to, after.edges[i]);
    }
    return edges;
}

/// Documented: whoever doesn't ask for data may not be told of edges that have some.
CUresult check_lossless(const std::vector<CUgraphEdgeData>& data, bool asks_for_nodes, bool asks_for_data) {
    if (asks_for_data)
        return asks_for_nodes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    const Dependencies all{std::vector<CUgraphNode>(data.size()), data};
    return asks_for_nodes && all.has_data() ? CUDA_ERROR_LOSSY_QUERY : CUDA_SUCCESS;
}

CUresult get_edges(CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data, size_t* count) {
    CUSLICE_FIND_ARGUMENT(graph, graphs, handle);
    if (count == nullptr || (from == nullptr) != (to == nullptr))
        return CUDA_ERROR_INVALID_VALUE;
    const Edges edges = edges_of(*graph);
    CUSLICE_TRY(check_lossless(edges.data, from != nullptr, data != nullptr));
    give_first(edges.to, to, *count);
    give_first(edges.data, data, *count);
    *count = give_first(edges.from, from, *count);
    return CUDA_SUCCESS;
}

CUresult give(const std::vector<CUgraphNode>& nodes, const std::vector<CUgraphEdgeData>& edges, CUgraphNode* out,
              CUgraphEdgeData* data, size_t* count) {
    if (count == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_TRY(check_lossless(edges, out != nullptr, data != nullptr));
    give_first(edges, data, *count);
    *count = give_first(nodes, out, *count);
    return CUDA_SUCCESS;
}

CUresult get_dependencies(CUgraphNode handle, CUgraphNode* out, CUgraphEdgeData* data, size_t* count) {
    CUSLICE_FIND_ARGUMENT(node, graph_nodes, handle);
    return give(node->after.nodes, node->after.edges, out, data, count);
}

CUresult get_dependents(CUgraphNode handle, CUgraphNode* out, CUgraphEdgeData* data, size_t* count) {
    CUSLICE_FIND_ARGUMENT(node, graph_nodes, handle);
    const Edges all = edges_of(*graphs.find(node->graph));
    Edges found;
    for (size_t i = 0; i < all.from.size(); i++) {
        if (all.from[i] == handle)
            found.add(handle, all.to[i], all.data[i]);
    }
    return give(found.to, found.data, out, data, count);
}

/// Edges as a program names them; `data` is null where none has any.
struct Named {
    const CUgraphNode* from;
    const CUgraphNode* to;
    const CUgraphEdgeData* data;
    size_t count;

    CUgraphEdgeData edge(size_t index) const { return data != nullptr ? data[index] : CUgraphEdgeData{}; }
};

/// Calls `change` with what each edge's end depends on, all or, if it fails for one, none of them.
template <typename Change>
CUresult change_edges(CUgraph graph, const Named& edges, Change change) {
    if (graphs.find(graph) == nullptr || (edges.count > 0 && (edges.from == nullptr || edges.to == nullptr)))
        return CUDA_ERROR_INVALID_VALUE;
    std::vector<std::pair<CUgraphNode, Dependencies>> before;
    for (size_t i = 0; i < edges.count; i++) {
        CUresult result = CUDA_ERROR_INVALID_VALUE;
        const bool both = is_node_of(graph, edges.from[i]) && is_node_of(graph, edges.to[i]);
        if (both && edges.from[i] != edges.to[i]) {
            Dependencies& after = graph_nodes.find(edges.to[i])->after;
            before.emplace_back(edges.to[i], after);
            result = change(after, edges.from[i], edges.edge(i));
        }
        if (result == CUDA_SUCCESS)
            continue;
        for (size_t j = before.size(); j-- > 0;)
            graph_nodes.find(before[j].first)->after = std::move(before[j].second);
        return result;
    }
    return CUDA_SUCCESS;
}

CUresult add_edges(CUgraph graph, const Named& edges) {
    return change_edges(graph, edges, [](Dependencies& after, CUgraphNode node, const CUgraphEdgeData& edge) {
        if (after.has(node, edge))
            return CUDA_ERROR_INVALID_VALUE;
        CUSLICE_TRY(check_edge(node, edge));
        after.add(node, edge);
        return CUDA_SUCCESS;
    });
}

CUresult remove_edges(CUgraph handle, const Named& edges) {
    CUSLICE_FIND_ARGUMENT(graph, graphs, handle);
    // Documented: a graph with nodes of memory keeps its edges. With which error is not.
    if (graph->has_memory && edges.count > 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    return change_edges(handle, edges, [](Dependencies& after, CUgraphNode node, const CUgraphEdgeData& edge) {
        if (!after.has(node, edge))
            return CUDA_ERROR_INVALID_VALUE;
        after.remove(node, edge);
        return CUDA_SUCCESS;
    });
}

}  // namespace

CUSLICE_ENTRY(cuGraphGetEdges, graph, from, to, count) { return get_edges(graph, from, to, nullptr, count); }
CUSLICE_ENTRY(cuGraphGetEdges_v2, graph, from, to, data, count) { return get_edges(graph, from, to, data, count); }

CUSLICE_ENTRY(cuGraphNodeGetDependencies, node, out, count) { return get_dependencies(node, out, nullptr, count); }
CUSLICE_ENTRY(cuGraphNodeGetDependencies_v2, node, out, data, count) {
    return get_dependencies(node, out, data, count);
}

CUSLICE_ENTRY(cuGraphNodeGetDependentNodes, node, out, count) { return get_dependents(node, out, nullptr, count); }
CUSLICE_ENTRY(cuGraphNodeGetDependentNodes_v2, node, out, data, count) {
    return get_dependents(node, out, data, count);
}

CUSLICE_ENTRY(cuGraphAddDependencies, graph, from, to, count) { return add_edges(graph, {from, to, nullptr, count}); }
CUSLICE_ENTRY(cuGraphAddDependencies_v2, graph, from, to, data, count) {
    return add_edges(graph, {from, to, data, count});
}

CUSLICE_ENTRY(cuGraphRemoveDependencies, graph, from, to, count) {
    return remove_edges(graph, {from, to, nullptr, count});
}
CUSLICE_ENTRY(cuGraphRemoveDependencies_v2, graph, from, to, data, count) {
    return remove_edges(graph, {from, to, data, count});
}
