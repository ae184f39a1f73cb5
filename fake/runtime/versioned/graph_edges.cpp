// Who depends on whom in a graph. 12 has a form without edge data and one (_v2) with; 13 the latter alone.

#include "fake/runtime/versioned/form.h"

using namespace cuslice::fake;

namespace {

cudaError_t edges_with_data(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* data,
                            size_t* count) {
    return in_context(CU(cuGraphGetEdges, 12030), graph, from, to, same_layout<CUgraphEdgeData>(data), count);
}

cudaError_t dependencies_with_data(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* data,
                                   size_t* count) {
    return in_context(CU(cuGraphNodeGetDependencies, 12030), node, nodes, same_layout<CUgraphEdgeData>(data), count);
}

cudaError_t dependents_with_data(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* data, size_t* count) {
    return in_context(CU(cuGraphNodeGetDependentNodes, 12030), node, nodes, same_layout<CUgraphEdgeData>(data), count);
}

}  // namespace

#if CUSLICE_CUDART_VERSION >= 13000

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* data,
                              size_t* count) {
    return edges_with_data(graph, from, to, data, count);
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* data,
                                         size_t* count) {
    return dependencies_with_data(node, nodes, data, count);
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* data,
                                           size_t* count) {
    return dependents_with_data(node, nodes, data, count);
}

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
}

cudaError_t graph_edges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, size_t* count) {
    return in_context(CU(cuGraphGetEdges, 10000), graph, from, to, count);
}

cudaError_t graph_edges_v2(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* data,
                           size_t* count) {
    return edges_with_data(graph, from, to, data, count);
}

cudaError_t graph_dependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes, size_t* count) {
    return in_context(CU(cuGraphNodeGetDependencies, 10000), node, nodes, count);
}

cudaError_t graph_dependencies_v2(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* data,
                                  size_t* count) {
    return dependencies_with_data(node, nodes, data, count);
}

cudaError_t graph_dependents(cudaGraphNode_t node, cudaGraphNode_t* nodes, size_t* count) {
    return in_context(CU(cuGraphNodeGetDependentNodes, 10000), node, nodes, count);
}

cudaError_t graph_dependents_v2(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* data, size_t* count) {
    return dependents_with_data(node, nodes, data, count);
}

#endif
