// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fake/runtime/state.h"

namespace cuslice::fake {

/// A node of the type that its parameters name. Edges with data, and types that aren't known here, fail by name.
cudaError_t add_graph_node(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                           const cudaGraphEdgeData* edges, size_t count, cudaGraphNodeParams* parameters);

// Parameters of nodes as the driver takes them. A context is current.

cudaError_t describe(CUDA_KERNEL_NODE_PARAMS& launch, const cudaKernelNodeParams& parameters);
cudaError_t describe(CUDA_MEMCPY3D& copy, const cudaMemcpy3DParms& parameters);
inline CUDA_MEMSET_NODE_PARAMS driver_fill(const cudaMemsetParams& fill) {
    return {address(fill.dst), fill.pitch, fill.value, fill.elementSize, fill.width, fill.height};
}
inline cudaKernelNodeParams older(const cudaKernelNodeParamsV2& launch) {
    return {launch.func, launch.gridDim, launch.blockDim, launch.sharedMemBytes, launch.kernelParams, launch.extra};
}

/// A run of bytes.
inline cudaMemcpy3DParms linear_copy(void* destination, const void* source, size_t bytes, cudaMemcpyKind kind) {
    cudaMemcpy3DParms copy{};
    copy.srcPtr = {const_cast<void*>(source), bytes, bytes, 1};
    copy.dstPtr = {destination, bytes, bytes, 1};
    copy.extent = {bytes, 1, 1};
    copy.kind = kind;
    return copy;
}

/// For a copy or fill, which the driver wants to know the context of.
template <class Act>
cudaError_t in_this_context(Act act) {
    CUcontext context = nullptr;
    CUSLICE_TRY(as_error(CU(cuCtxGetCurrent, 4000)(&context)));
    return as_error(act(context));
}

}  // namespace cuslice::fake
