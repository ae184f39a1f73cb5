// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fake/runtime/state.h"

#include <cstring>

namespace cuslice::fake {

/// A node of the type that its parameters name. Edges with data, and types that aren't known here, fail by name.
cudaError_t add_graph_node(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                           const cudaGraphEdgeData* edges, size_t count, cudaGraphNodeParams* parameters);

}  // namespace cuslice::fake
