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

CUSLICE_FORWARD(cudaGraphAddEventRecordNode, cuGraphAddEventRecordNode, 11010, node, graph, dependencies, count, event)
CUSLICE_FORWARD(cudaGraphAddEventWaitNode, cuGraphAddEventWaitNode, 11010, node, graph, dependencies, count, event)
CUSLICE_FORWARD(cudaGraphAddHostNode, cuGraphAddHostNode, 10000, node, graph, dependencies, count, parameters)
CUSLICE_FORWARD(cudaGraphAddMemAllocNode, cuGraphAddMemAllocNode, 11040, node, graph, dependencies, count, parameters)
CUSLICE_FORWARD(cudaGraphAddMemFreeNode, cuGraphAddMemFreeNode, 11040, node, graph, dependencies, count, pointer)
CUSLICE_FORWARD(cudaGraphMemAllocNodeGetParams, cuGraphMemAllocNodeGetParams, 11040, node, parameters)
CUSLICE_FORWARD(cudaGraphMemFreeNodeGetParams, cuGraphMemFreeNodeGetParams, 11040, node, pointer)

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

cudaError_t cuslice::fake::describe(CUgraphNodeParams& node, const cudaGraphNodeParams& parameters, CUcontext context) {
    node.type = static_cast<CUgraphNodeType>(parameters.type);
    static_assert(sizeof node.reserved0 == sizeof parameters.reserved0);
    std::memcpy(node.reserved0, parameters.reserved0, sizeof node.reserved0);
    node.reserved2 = parameters.reserved2;
    switch (parameters.type) {
        case cudaGraphNodeTypeKernel: {
            CUDA_KERNEL_NODE_PARAMS launch{};
            CUSLICE_TRY(describe(launch, older(parameters.kernel)));
            std::memcpy(&node.kernel, &launch, sizeof launch);
            return cudaSuccess;
        }
        case cudaGraphNodeTypeMemcpy:
            node.memcpy.flags = parameters.memcpy.flags;
            node.memcpy.copyCtx = context;
            return describe(node.memcpy.copyParams, parameters.memcpy.copyParams);
        case cudaGraphNodeTypeMemset: {
            const cudaMemsetParamsV2& fill = parameters.memset;
            node.memset = {address(fill.dst), fill.pitch,  fill.value, fill.elementSize,
                           fill.width,        fill.height, context};
            return cudaSuccess;
        }
        case cudaGraphNodeTypeConditional: {
            const cudaConditionalNodeParams& conditional = parameters.conditional;
            node.conditional = {conditional.handle, static_cast<CUgraphConditionalNodeType>(conditional.type),
                                conditional.size, nullptr, context};
            return cudaSuccess;
        }
        default:
            // The driver's structures of all other types are these.
            static_assert(sizeof node.reserved1 == sizeof parameters.reserved1);
            std::memcpy(node.reserved1, parameters.reserved1, sizeof node.reserved1);
            return cudaSuccess;
    }
}

cudaError_t cuslice::fake::add_graph_node(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                          const cudaGraphEdgeData* edges, size_t count,
                                          cudaGraphNodeParams* parameters) {
    return with_described(parameters, [&](CUgraphNodeParams& described) {
        const CUresult result =
            edges == nullptr ? CU(cuGraphAddNode, 12020)(node, graph, dependencies, count, &described)
                             : CU(cuGraphAddNode, 12030)(node, graph, dependencies,
                                                         same_layout<const CUgraphEdgeData>(edges), count, &described);
        if (result != CUDA_SUCCESS)
            return result;
        if (parameters->type == cudaGraphNodeTypeMemAlloc)
            parameters->alloc.dptr = reinterpret_cast<void*>(described.alloc.dptr);
        if (parameters->type == cudaGraphNodeTypeConditional)
            parameters->conditional.phGraph_out = described.conditional.phGraph_out;
        return result;
    });
}
