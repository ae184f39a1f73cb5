// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fake/runtime/state.h"

namespace cuslice::fake {

/// A node of the type that its parameters name.
cudaError_t add_graph_node(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                           const cudaGraphEdgeData* edges, size_t count, cudaGraphNodeParams* parameters);

// Parameters of nodes as the driver takes them. A context is current.
cudaError_t describe(CUDA_KERNEL_NODE_PARAMS& launch, const cudaKernelNodeParams& parameters);
cudaError_t describe(CUDA_MEMCPY3D& copy, const cudaMemcpy3DParms& parameters);
cudaError_t describe(CUDA_MEMSET_NODE_PARAMS& fill, const cudaMemsetParams& parameters);
cudaError_t describe(CUgraphNodeParams& node, const cudaGraphNodeParams& parameters, CUcontext context);
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

/// Calls `act` with the current context.
template <class Act>
CUresult in_this_context(Act act) {
    CUcontext context = nullptr;
    const CUresult found = CU(cuCtxGetCurrent, 4000)(&context);
    return found == CUDA_SUCCESS ? act(context) : found;
}

/// Calls `act` with a node's parameters as the driver takes them, and with the current context, which the driver wants
/// to know of a copy or fill.
template <class InDriver, class Parameters, class Act>
cudaError_t with_described(const Parameters* parameters, Act act) {
    if (parameters == nullptr)
        return record(cudaErrorInvalidValue);
    return in_context([&] {
        InDriver described{};
        CUSLICE_TRY(describe(described, *parameters));
        return as_error(in_this_context([&](CUcontext context) { return act(described, context); }));
    });
}
/// The same with parameters of any type, which name their context.
template <class Act>
cudaError_t with_described(const cudaGraphNodeParams* parameters, Act act) {
    if (parameters == nullptr)
        return record(cudaErrorInvalidValue);
    return in_context([&] {
        CUcontext context = nullptr;
        CUgraphNodeParams described{};
        CUSLICE_TRY(as_error(CU(cuCtxGetCurrent, 4000)(&context)));
        CUSLICE_TRY(describe(described, *parameters, context));
        return as_error(act(described));
    });
}
template <class Act>
cudaError_t with_launch(const cudaKernelNodeParams* parameters, Act act) {
    return with_described<CUDA_KERNEL_NODE_PARAMS>(parameters, act);
}
template <class Act>
cudaError_t with_copy(const cudaMemcpy3DParms* parameters, Act act) {
    return with_described<CUDA_MEMCPY3D>(parameters, act);
}
template <class Act>
cudaError_t with_fill(const cudaMemsetParams* parameters, Act act) {
    return with_described<CUDA_MEMSET_NODE_PARAMS>(parameters, act);
}

}  // namespace cuslice::fake
