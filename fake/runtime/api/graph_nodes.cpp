// SPDX-License-Identifier: Apache-2.0
// Nodes that a program adds to a graph one by one.

#include "fake/runtime/graph_nodes.h"

#include <cstring>

#include "fake/runtime/copy_box.h"
#include "fake/runtime/forward.h"
#include "fake/runtime/launch_config.h"
#include "fake/runtime/modules.h"
#include "fake/runtime/report.h"

using namespace cuslice::fake;

cudaError_t cuslice::fake::describe(CUDA_KERNEL_NODE_PARAMS& launch, const cudaKernelNodeParams& parameters) {
    CUSLICE_TRY(function_of(parameters.func, &launch.func));
    set_shape(launch, parameters.gridDim, parameters.blockDim);
    launch.sharedMemBytes = parameters.sharedMemBytes;
    launch.kernelParams = parameters.kernelParams;
    launch.extra = parameters.extra;
    return cudaSuccess;
}

cudaError_t cuslice::fake::describe(CUDA_MEMCPY3D& copy, const cudaMemcpy3DParms& parameters) {
    return is_direction(parameters.kind) ? describe_box(copy, parameters, parameters.kind)
                                         : cudaErrorInvalidMemcpyDirection;
}

cudaError_t cuslice::fake::describe(CUDA_MEMSET_NODE_PARAMS& fill, const cudaMemsetParams& parameters) {
    fill = {address(parameters.dst), parameters.pitch, parameters.value,
            parameters.elementSize,  parameters.width, parameters.height};
    return cudaSuccess;
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t count, const cudaKernelNodeParams* parameters) {
    return with_launch(parameters, [&](const CUDA_KERNEL_NODE_PARAMS& launch, CUcontext) {
        return CU(cuGraphAddKernelNode, 12000)(node, graph, dependencies, count, &launch);
    });
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t count, const cudaMemcpy3DParms* parameters) {
    return with_copy(parameters, [&](const CUDA_MEMCPY3D& copy, CUcontext context) {
        return CU(cuGraphAddMemcpyNode, 10000)(node, graph, dependencies, count, &copy, context);
    });
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                     size_t count, void* destination, const void* source, size_t bytes,
                                     cudaMemcpyKind kind) {
    const cudaMemcpy3DParms copy = linear_copy(destination, source, bytes, kind);
    return cudaGraphAddMemcpyNode(node, graph, dependencies, count, &copy);
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t count, const cudaMemsetParams* parameters) {
    return with_fill(parameters, [&](const CUDA_MEMSET_NODE_PARAMS& fill, CUcontext context) {
        return CU(cuGraphAddMemsetNode, 10000)(node, graph, dependencies, count, &fill, context);
    });
}

CUSLICE_FORWARD(cudaGraphAddHostNode, cuGraphAddHostNode, 10000, node, graph, dependencies, count, parameters)
CUSLICE_FORWARD(cudaGraphAddMemAllocNode, cuGraphAddMemAllocNode, 11040, node, graph, dependencies, count, parameters)
CUSLICE_FORWARD(cudaGraphAddMemFreeNode, cuGraphAddMemFreeNode, 11040, node, graph, dependencies, count, pointer)
CUSLICE_FORWARD(cudaGraphMemAllocNodeGetParams, cuGraphMemAllocNodeGetParams, 11040, node, parameters)
CUSLICE_FORWARD(cudaGraphMemFreeNodeGetParams, cuGraphMemFreeNodeGetParams, 11040, node, pointer)

namespace {

/// Adds a node of a type that the driver has no function of its own for.
cudaError_t add_by_driver(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count,
                          CUgraphNodeParams parameters) {
    return in_context(
        [&] { return as_error(CU(cuGraphAddNode, 12020)(node, graph, dependencies, count, &parameters)); });
}

CUgraphNodeParams driver_child(const cudaChildGraphNodeParams& child) {
    CUgraphNodeParams parameters{};
    parameters.type = CU_GRAPH_NODE_TYPE_GRAPH;
    parameters.graph = {child.graph, static_cast<CUgraphChildGraphNodeOwnership>(child.ownership)};
    return parameters;
}

cudaError_t add_conditional(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count,
                            cudaConditionalNodeParams& conditional) {
    return in_context([&] {
        return in_this_context([&](CUcontext context) {
            CUgraphNodeParams parameters{};
            parameters.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
            parameters.conditional = {conditional.handle, static_cast<CUgraphConditionalNodeType>(conditional.type),
                                      conditional.size, nullptr, context};
            const CUresult result = CU(cuGraphAddNode, 12020)(node, graph, dependencies, count, &parameters);
            if (result == CUDA_SUCCESS)
                conditional.phGraph_out = parameters.conditional.phGraph_out;
            return result;
        });
    });
}

}  // namespace

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t graph, unsigned value,
                                             unsigned flags) {
    if (handle == nullptr)
        return record(cudaErrorInvalidValue);
    return in_context([&] {
        return in_this_context([&](CUcontext context) {
            CUgraphConditionalHandle made = 0;
            const CUresult result = CU(cuGraphConditionalHandleCreate, 12030)(&made, graph, context, value, flags);
            if (result == CUDA_SUCCESS)
                *handle = made;
            return result;
        });
    });
}

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
            const cudaKernelNodeParams launch = older(parameters->kernel);
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
        case cudaGraphNodeTypeGraph:
            return add_by_driver(node, graph, dependencies, count, driver_child(parameters->graph));
        case cudaGraphNodeTypeConditional:
            return add_conditional(node, graph, dependencies, count, parameters->conditional);
        default:
            log_line("fake CUDA runtime: cudaGraphAddNode of type %d is not supported; it fails with error 801",
                     static_cast<int>(parameters->type));
            return record(cudaErrorNotSupported);
    }
}
