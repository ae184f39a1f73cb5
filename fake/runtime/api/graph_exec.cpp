// SPDX-License-Identifier: Apache-2.0
// Changes of an instantiated graph's nodes, which its next launch sees.

#include "fake/runtime/forward.h"
#include "fake/runtime/graph_nodes.h"

using namespace cuslice::fake;

CUSLICE_FORWARD(cudaGraphChildGraphNodeGetGraph, cuGraphChildGraphNodeGetGraph, 10000, node, graph)
CUSLICE_FORWARD(cudaGraphExecEventRecordNodeSetEvent, cuGraphExecEventRecordNodeSetEvent, 11010, executable, node,
                event)
CUSLICE_FORWARD(cudaGraphExecEventWaitNodeSetEvent, cuGraphExecEventWaitNodeSetEvent, 11010, executable, node, event)
CUSLICE_FORWARD(cudaGraphNodeSetEnabled, cuGraphNodeSetEnabled, 11060, executable, node, enabled)
CUSLICE_FORWARD(cudaGraphNodeGetEnabled, cuGraphNodeGetEnabled, 11060, executable, node, enabled)
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
    return with_described(parameters, [&](CUgraphNodeParams& described) {
        return CU(cuGraphExecNodeSetParams, 12020)(executable, node, &described);
    });
}
