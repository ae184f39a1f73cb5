// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/graph_dependencies.h"

#include <algorithm>
#include <cstring>

namespace cuslice::fake {

namespace {

constexpr CUgraphEdgeData kPlain{};

bool same(const CUgraphEdgeData& one, const CUgraphEdgeData& other) {
    return std::memcmp(&one, &other, sizeof one) == 0;
}

}  // namespace

size_t Dependencies::find(CUgraphNode node, const CUgraphEdgeData& edge) const {
    size_t index = 0;
    while (index < size() && (nodes[index] != node || !same(edges[index], edge)))
        index++;
    return index;
}

void Dependencies::erase(size_t index) {
    nodes.erase(nodes.begin() + static_cast<ptrdiff_t>(index));
    edges.erase(edges.begin() + static_cast<ptrdiff_t>(index));
}

bool Dependencies::has(CUgraphNode node, const CUgraphEdgeData& edge) const { return find(node, edge) < size(); }

void Dependencies::add(CUgraphNode node, const CUgraphEdgeData& edge) {
    if (has(node, edge))
        return;
    nodes.push_back(node);
    edges.push_back(edge);
}

void Dependencies::add(const Dependencies& others) {
    for (size_t i = 0; i < others.size(); i++)
        add(others.nodes[i], others.edges[i]);
}

void Dependencies::remove(CUgraphNode node, const CUgraphEdgeData& edge) {
    if (const size_t index = find(node, edge); index < size())
        erase(index);
}

void Dependencies::remove(CUgraphNode node) {
    for (size_t i = size(); i-- > 0;) {
        if (nodes[i] == node)
            erase(i);
    }
}

bool Dependencies::has_data() const {
    return std::any_of(edges.begin(), edges.end(), [](const CUgraphEdgeData& edge) { return !same(edge, kPlain); });
}

}  // namespace cuslice::fake
