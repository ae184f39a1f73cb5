// Stream capture, and graphs on streams. Built twice: legacy and per-thread default stream (_ptsz).

#include "fake/runtime/state.h"

using namespace cuslice::fake;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
    return in_context(CU_STREAM(cuStreamBeginCapture, 10010), stream, static_cast<CUstreamCaptureMode>(mode));
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                          const cudaGraphEdgeData* edges, size_t count, cudaStreamCaptureMode mode) {
    return in_context(CU_STREAM(cuStreamBeginCaptureToGraph, 12030), stream, graph, dependencies,
                      same_layout<const CUgraphEdgeData>(edges), count, static_cast<CUstreamCaptureMode>(mode));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
    return in_context(CU_STREAM(cuStreamEndCapture, 10000), stream, graph);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
    return in_context(CU_STREAM(cuStreamIsCapturing, 10000), stream, reinterpret_cast<CUstreamCaptureStatus*>(status));
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
    return in_context(CU_STREAM(cuGraphLaunch, 10000), executable, stream);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream) {
    return in_context(CU_STREAM(cuGraphUpload, 11010), executable, stream);
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* executable, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* parameters) {
    return in_context(CU_STREAM(cuGraphInstantiateWithParams, 12000), executable, graph,
                      same_layout<CUDA_GRAPH_INSTANTIATE_PARAMS>(parameters));
}
