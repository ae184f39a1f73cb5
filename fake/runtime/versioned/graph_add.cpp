// SPDX-License-Identifier: Apache-2.0
// Adding a node by its type. 12 has a form without edge data and one (_v2) with; 13 the latter alone.

#include "fake/runtime/graph_nodes.h"
#include "fake/runtime/versioned/form.h"

using namespace cuslice::fake;

#if CUSLICE_CUDART_VERSION >= 13000

cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                             const cudaGraphEdgeData* edges, size_t count, cudaGraphNodeParams* parameters) {
    return add_graph_node(node, graph, dependencies, edges, count, parameters);
}

#else

extern "C" {
cudaError_t graph_add(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t, cudaGraphNodeParams*)
    CUSLICE_EXPORT_AS(cudaGraphAddNode);
cudaError_t graph_add_v2(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, const cudaGraphEdgeData*, size_t,
                         cudaGraphNodeParams*) CUSLICE_EXPORT_AS(cudaGraphAddNode_v2);
}

cudaError_t graph_add(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count,
                      cudaGraphNodeParams* parameters) {
    return add_graph_node(node, graph, dependencies, nullptr, count, parameters);
}

cudaError_t graph_add_v2(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                         const cudaGraphEdgeData* edges, size_t count, cudaGraphNodeParams* parameters) {
    return add_graph_node(node, graph, dependencies, edges, count, parameters);
}

#endif
