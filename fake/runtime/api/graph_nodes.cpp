// SPDX-License-Identifier: Apache-2.0
// Nodes that a program adds to a graph one by one.

#include "fake/runtime/graph_nodes.h"

#include "fake/runtime/copy_box.h"
#include "fake/runtime/forward.h"
#include "fake/runtime/launch_config.h"
#include "fake/runtime/modules.h"
#include "fake/runtime/report.h"

using namespace cuslice::fake;

namespace {

/// Adds a copy or fill, which the driver wants to know the context of.
template <class Add>
cudaError_t in_this_context(Add add) {
    CUcontext context = nullptr;
    CUSLICE_TRY(as_error(CU(cuCtxGetCurrent, 4000)(&context)));
    return as_error(add(context));
}

CUDA_MEMSET_NODE_PARAMS driver_fill(const cudaMemsetParams& fill) {
    return {address(fill.dst), fill.pitch, fill.value, fill.elementSize, fill.width, fill.height};
}

}  // namespace

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t count, const cudaKernelNodeParams* parameters) {
    if (parameters == nullptr)
        return record(cudaErrorInvalidValue);
    return in_context([&] {
        CUDA_KERNEL_NODE_PARAMS launch{};
        CUSLICE_TRY(function_of(parameters->func, &launch.func));
        set_shape(launch, parameters->gridDim, parameters->blockDim);
        launch.sharedMemBytes = parameters->sharedMemBytes;
        launch.kernelParams = parameters->kernelParams;
        launch.extra = parameters->extra;
        return as_error(CU(cuGraphAddKernelNode, 12000)(node, graph, dependencies, count, &launch));
    });
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t count, const cudaMemcpy3DParms* parameters) {
    if (parameters == nullptr || !is_direction(parameters->kind)) {
        return record(parameters == nullptr ? cudaErrorInvalidValue : cudaErrorInvalidMemcpyDirection);
    }
    return in_context([&] {
        CUDA_MEMCPY3D copy{};
        CUSLICE_TRY(describe_box(copy, *parameters, parameters->kind));
        return in_this_context([&](CUcontext context) {
            return CU(cuGraphAddMemcpyNode, 10000)(node, graph, dependencies, count, &copy, context);
        });
    });
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                     size_t count, void* destination, const void* source, size_t bytes,
                                     cudaMemcpyKind kind) {
    cudaMemcpy3DParms copy{};
    copy.srcPtr = {const_cast<void*>(source), bytes, bytes, 1};
    copy.dstPtr = {destination, bytes, bytes, 1};
    copy.extent = {bytes, 1, 1};
    copy.kind = kind;
    return cudaGraphAddMemcpyNode(node, graph, dependencies, count, &copy);
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t count, const cudaMemsetParams* parameters) {
    if (parameters == nullptr)
        return record(cudaErrorInvalidValue);
    return in_context([&] {
        return in_this_context([&](CUcontext context) {
            const CUDA_MEMSET_NODE_PARAMS fill = driver_fill(*parameters);
            return CU(cuGraphAddMemsetNode, 10000)(node, graph, dependencies, count, &fill, context);
        });
    });
}

CUSLICE_FORWARD(cudaGraphAddHostNode, cuGraphAddHostNode, 10000, node, graph, dependencies, count, parameters)
CUSLICE_FORWARD(cudaGraphAddMemAllocNode, cuGraphAddMemAllocNode, 11040, node, graph, dependencies, count, parameters)
CUSLICE_FORWARD(cudaGraphAddMemFreeNode, cuGraphAddMemFreeNode, 11040, node, graph, dependencies, count, pointer)
CUSLICE_FORWARD(cudaGraphMemAllocNodeGetParams, cuGraphMemAllocNodeGetParams, 11040, node, parameters)
CUSLICE_FORWARD(cudaGraphMemFreeNodeGetParams, cuGraphMemFreeNodeGetParams, 11040, node, pointer)

cudaError_t cuslice::fake::add_graph_node(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                          const cudaGraphEdgeData* edges, size_t count,
                                          cudaGraphNodeParams* parameters) {
    if (parameters == nullptr)
        return record(cudaErrorInvalidValue);
    static constexpr cudaGraphEdgeData kPlain{};
    for (size_t i = 0; edges != nullptr && i < count; ++i) {
        if (std::memcmp(&edges[i], &kPlain, sizeof kPlain) != 0)
            return record(cudaErrorNotSupported);
    }
    switch (parameters->type) {
        case cudaGraphNodeTypeKernel: {
            const cudaKernelNodeParamsV2& kernel = parameters->kernel;
            const cudaKernelNodeParams launch{kernel.func,           kernel.gridDim,      kernel.blockDim,
                                              kernel.sharedMemBytes, kernel.kernelParams, kernel.extra};
            return cudaGraphAddKernelNode(node, graph, dependencies, count, &launch);
        }
        case cudaGraphNodeTypeMemcpy:
            if (parameters->memcpy.flags != 0)
                return record(cudaErrorInvalidValue);
            return cudaGraphAddMemcpyNode(node, graph, dependencies, count, &parameters->memcpy.copyParams);
        case cudaGraphNodeTypeMemset:
            return cudaGraphAddMemsetNode(node, graph, dependencies, count,
                                          same_layout<cudaMemsetParams>(&parameters->memset));
        case cudaGraphNodeTypeHost:
            return cudaGraphAddHostNode(node, graph, dependencies, count,
                                        same_layout<cudaHostNodeParams>(&parameters->host));
        case cudaGraphNodeTypeEmpty:
            return cudaGraphAddEmptyNode(node, graph, dependencies, count);
        case cudaGraphNodeTypeMemAlloc:
            return cudaGraphAddMemAllocNode(node, graph, dependencies, count,
                                            same_layout<cudaMemAllocNodeParams>(&parameters->alloc));
        case cudaGraphNodeTypeMemFree:
            return cudaGraphAddMemFreeNode(node, graph, dependencies, count, parameters->free.dptr);
        default:
            log_line("fake CUDA runtime: cudaGraphAddNode of type %d is not supported; it fails with error 801",
                     static_cast<int>(parameters->type));
            return record(cudaErrorNotSupported);
    }
}
