// SPDX-License-Identifier: Apache-2.0
#pragma once
// Nodes that another node comes after, each with the data of the edge from it.

#include <cstddef>
#include <vector>

#include "fake/driver/cuda_api.h"

namespace cuslice::fake {

/// Dependencies of a node, or of the next one that a stream captures. The arrays are parallel, as the driver's
/// functions take and give them.
struct Dependencies {
    std::vector<CUgraphNode> nodes;
    std::vector<CUgraphEdgeData> edges;

    size_t size() const { return nodes.size(); }
    bool has(CUgraphNode node, const CUgraphEdgeData& edge) const;
    /// Without an effect if it is there.
    void add(CUgraphNode node, const CUgraphEdgeData& edge = {});
    void add(const Dependencies& others);
    void remove(CUgraphNode node, const CUgraphEdgeData& edge);
    /// Removes all edges from a node.
    void remove(CUgraphNode node);
    /// True if an edge has data that a form without data can't give.
    bool has_data() const;

  private:
    size_t find(CUgraphNode node, const CUgraphEdgeData& edge) const;
    void erase(size_t index);
};

}  // namespace cuslice::fake
