// SPDX-License-Identifier: Apache-2.0
// Instances of graphs, made and changed as a whole. 11 tells what went wrong by further arguments.

#include "fake/runtime/versioned/form.h"

using namespace cuslice::fake;

#if CUSLICE_CUDART_VERSION >= 12000

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
    return cudaGraphInstantiateWithFlags(executable, graph, flags);
}

CUSLICE_FORWARD(cudaGraphExecUpdate, cuGraphExecUpdate, 12000, executable, graph, result)

#else

extern "C" {
cudaError_t instantiate(cudaGraphExec_t*, cudaGraph_t, cudaGraphNode_t*, char*, size_t)
    CUSLICE_EXPORT_AS(cudaGraphInstantiate);
cudaError_t update_instance(cudaGraphExec_t, cudaGraph_t, cudaGraphNode_t*, cudaGraphExecUpdateResult*)
    CUSLICE_EXPORT_AS(cudaGraphExecUpdate);
}

// NVIDIA's header of 13.0 has no type for this form.
using Instantiate = CUresult (*)(CUgraphExec*, CUgraph, CUgraphNode*, char*, size_t);
CUSLICE_FORWARD_BY(PlainFunction, instantiate, "cuGraphInstantiate", Instantiate, 11000, executable, graph, error_node,
                   log, log_size)
CUSLICE_FORWARD(update_instance, cuGraphExecUpdate, 10020, executable, graph, error_node, result)

#endif
