// SPDX-License-Identifier: Apache-2.0
#pragma once
// Graph nodes that allocate.
#include "shim/runtime/runtime_shim.h"

namespace cuslice::runtime {

template <int kVersion>
cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                     size_t count, cudaMemAllocNodeParams* wish) {
    if (!wish || !view())
        return CUSLICE_NEXT(cudaGraphAddMemAllocNode)(node, graph, after, count, wish);
    cudaMemAllocNodeParams real = *wish;
    real.poolProps.location = physical(wish->poolProps.location);
    const cudaError_t result = CUSLICE_NEXT(cudaGraphAddMemAllocNode)(node, graph, after, count, &real);
    if (result == cudaSuccess)
        wish->dptr = real.dptr;
    return result;
}

template <int kVersion>
cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams* wish) {
    const cudaError_t result = CUSLICE_NEXT(cudaGraphMemAllocNodeGetParams)(node, wish);
    const SplitView* split = view();
    if (result == cudaSuccess && split && wish->poolProps.location.type == cudaMemLocationTypeDevice)
        wish->poolProps.location.id = split->shown(wish->poolProps.location.id);
    return result;
}

// Translates the GPU of an allocation node. Other nodes of the runtime name only objects in the current context.
template <typename Call>
cudaError_t with_node(cudaGraphNodeParams* node, Call call) {
    if (!node || node->type != cudaGraphNodeTypeMemAlloc || !view())
        return call(node);
    cudaGraphNodeParams real = *node;
    real.alloc.poolProps.location = physical(node->alloc.poolProps.location);
    const cudaError_t result = call(&real);
    if (result == cudaSuccess)
        node->alloc.dptr = real.alloc.dptr;
    return result;
}

inline cudaError_t cudaGraphAddNode_12(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                       size_t count, cudaGraphNodeParams* what) {
    return with_node(what, [&](cudaGraphNodeParams* real) {
        return CUSLICE_NEXT_FORM(cudaGraphAddNode, 12)(node, graph, after, count, real);
    });
}

inline cudaError_t cudaGraphAddNode_13(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                       const cudaGraphEdgeData* edges, size_t count, cudaGraphNodeParams* what) {
    return with_node(what, [&](cudaGraphNodeParams* real) {
        return CUSLICE_NEXT_FORM(cudaGraphAddNode, 13)(node, graph, after, edges, count, real);
    });
}

template <int kVersion>
cudaError_t cudaGraphAddNode_v2(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                const cudaGraphEdgeData* edges, size_t count, cudaGraphNodeParams* what) {
    return with_node(what, [&](cudaGraphNodeParams* real) {
        return CUSLICE_NEXT(cudaGraphAddNode_v2)(node, graph, after, edges, count, real);
    });
}

}  // namespace cuslice::runtime
