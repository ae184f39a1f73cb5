// SPDX-License-Identifier: Apache-2.0
// Dependencies between the nodes of a graph. 12 has a form without edge data and one (_v2) with; 13 the latter alone.

#include "fake/runtime/versioned/form.h"

using namespace cuslice::fake;

#if CUSLICE_CUDART_VERSION >= 13000

CUSLICE_FORWARD(cudaGraphGetEdges, cuGraphGetEdges, 12030, graph, from, to, data, count)
CUSLICE_FORWARD(cudaGraphNodeGetDependencies, cuGraphNodeGetDependencies, 12030, node, nodes, data, count)
CUSLICE_FORWARD(cudaGraphNodeGetDependentNodes, cuGraphNodeGetDependentNodes, 12030, node, nodes, data, count)
CUSLICE_FORWARD(cudaGraphAddDependencies, cuGraphAddDependencies, 12030, graph, from, to, data, count)
CUSLICE_FORWARD(cudaGraphRemoveDependencies, cuGraphRemoveDependencies, 12030, graph, from, to, data, count)

#else

extern "C" {
cudaError_t graph_edges(cudaGraph_t, cudaGraphNode_t*, cudaGraphNode_t*, size_t*) CUSLICE_EXPORT_AS(cudaGraphGetEdges);
cudaError_t graph_edges_v2(cudaGraph_t, cudaGraphNode_t*, cudaGraphNode_t*, cudaGraphEdgeData*, size_t*)
    CUSLICE_EXPORT_AS(cudaGraphGetEdges_v2);
cudaError_t graph_dependencies(cudaGraphNode_t, cudaGraphNode_t*, size_t*)
    CUSLICE_EXPORT_AS(cudaGraphNodeGetDependencies);
cudaError_t graph_dependencies_v2(cudaGraphNode_t, cudaGraphNode_t*, cudaGraphEdgeData*, size_t*)
    CUSLICE_EXPORT_AS(cudaGraphNodeGetDependencies_v2);
cudaError_t graph_dependents(cudaGraphNode_t, cudaGraphNode_t*, size_t*)
    CUSLICE_EXPORT_AS(cudaGraphNodeGetDependentNodes);
cudaError_t graph_dependents_v2(cudaGraphNode_t, cudaGraphNode_t*, cudaGraphEdgeData*, size_t*)
    CUSLICE_EXPORT_AS(cudaGraphNodeGetDependentNodes_v2);
cudaError_t add_edges(cudaGraph_t, const cudaGraphNode_t*, const cudaGraphNode_t*, size_t)
    CUSLICE_EXPORT_AS(cudaGraphAddDependencies);
cudaError_t add_edges_v2(cudaGraph_t, const cudaGraphNode_t*, const cudaGraphNode_t*, const cudaGraphEdgeData*, size_t)
    CUSLICE_EXPORT_AS(cudaGraphAddDependencies_v2);
cudaError_t remove_edges(cudaGraph_t, const cudaGraphNode_t*, const cudaGraphNode_t*, size_t)
    CUSLICE_EXPORT_AS(cudaGraphRemoveDependencies);
cudaError_t remove_edges_v2(cudaGraph_t, const cudaGraphNode_t*, const cudaGraphNode_t*, const cudaGraphEdgeData*,
                            size_t) CUSLICE_EXPORT_AS(cudaGraphRemoveDependencies_v2);
}

CUSLICE_FORWARD(graph_edges, cuGraphGetEdges, 10000, graph, from, to, count)
CUSLICE_FORWARD(graph_edges_v2, cuGraphGetEdges, 12030, graph, from, to, data, count)
CUSLICE_FORWARD(graph_dependencies, cuGraphNodeGetDependencies, 10000, node, nodes, count)
CUSLICE_FORWARD(graph_dependencies_v2, cuGraphNodeGetDependencies, 12030, node, nodes, data, count)
CUSLICE_FORWARD(graph_dependents, cuGraphNodeGetDependentNodes, 10000, node, nodes, count)
CUSLICE_FORWARD(graph_dependents_v2, cuGraphNodeGetDependentNodes, 12030, node, nodes, data, count)
CUSLICE_FORWARD(add_edges, cuGraphAddDependencies, 10000, graph, from, to, count)
CUSLICE_FORWARD(add_edges_v2, cuGraphAddDependencies, 12030, graph, from, to, data, count)
CUSLICE_FORWARD(remove_edges, cuGraphRemoveDependencies, 10000, graph, from, to, count)
CUSLICE_FORWARD(remove_edges_v2, cuGraphRemoveDependencies, 12030, graph, from, to, data, count)

#endif
