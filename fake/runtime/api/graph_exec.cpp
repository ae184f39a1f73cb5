// SPDX-License-Identifier: Apache-2.0
// Changes of an instantiated graph's nodes, which its next launch sees.

#include "fake/runtime/forward.h"
#include "fake/runtime/graph_nodes.h"
#include "fake/runtime/report.h"

using namespace cuslice::fake;

CUSLICE_FORWARD(cudaGraphChildGraphNodeGetGraph, cuGraphChildGraphNodeGetGraph, 10000, node, graph)
CUSLICE_FORWARD(cudaGraphExecHostNodeSetParams, cuGraphExecHostNodeSetParams, 10020, executable, node, parameters)
CUSLICE_FORWARD(cudaGraphExecChildGraphNodeSetParams, cuGraphExecChildGraphNodeSetParams, 11010, executable, node,
                child)

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* parameters) {
    return with_launch(parameters, [&](const CUDA_KERNEL_NODE_PARAMS& launch, CUcontext) {
        return CU(cuGraphExecKernelNodeSetParams, 12000)(executable, node, &launch);
    });
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* parameters) {
    return with_copy(parameters, [&](const CUDA_MEMCPY3D& copy, CUcontext context) {
        return CU(cuGraphExecMemcpyNodeSetParams, 10020)(executable, node, &copy, context);
    });
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t executable, cudaGraphNode_t node, void* destination,
                                               const void* source, size_t bytes, cudaMemcpyKind kind) {
    const cudaMemcpy3DParms copy = linear_copy(destination, source, bytes, kind);
    return cudaGraphExecMemcpyNodeSetParams(executable, node, &copy);
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaMemsetParams* parameters) {
    return with_fill(parameters, [&](const CUDA_MEMSET_NODE_PARAMS& fill, CUcontext context) {
        return CU(cuGraphExecMemsetNodeSetParams, 10020)(executable, node, &fill, context);
    });
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                       cudaGraphNodeParams* parameters) {
    if (parameters == nullptr)
        return record(cudaErrorInvalidValue);
    switch (parameters->type) {
        case cudaGraphNodeTypeKernel: {
            const cudaKernelNodeParams launch = older(parameters->kernel);
            return cudaGraphExecKernelNodeSetParams(executable, node, &launch);
        }
        case cudaGraphNodeTypeMemcpy:
            if (parameters->memcpy.flags != 0)
                return record(cudaErrorInvalidValue);
            return cudaGraphExecMemcpyNodeSetParams(executable, node, &parameters->memcpy.copyParams);
        case cudaGraphNodeTypeMemset:
            return cudaGraphExecMemsetNodeSetParams(executable, node,
                                                    same_layout<cudaMemsetParams>(&parameters->memset));
        case cudaGraphNodeTypeHost:
            return cudaGraphExecHostNodeSetParams(executable, node, same_layout<cudaHostNodeParams>(&parameters->host));
        case cudaGraphNodeTypeGraph:
            return cudaGraphExecChildGraphNodeSetParams(executable, node, parameters->graph.graph);
        default:
            log_line(
                "fake CUDA runtime: cudaGraphExecNodeSetParams of type %d is not supported; it fails with error 801",
                static_cast<int>(parameters->type));
            return record(cudaErrorNotSupported);
    }
}
