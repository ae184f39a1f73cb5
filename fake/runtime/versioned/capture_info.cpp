// What a capture has so far. 12 has three forms, of 3, 6 and 7 arguments; 13 kept the last. Built twice: legacy and
// per-thread default stream (_ptsz).

#include "fake/runtime/versioned/form.h"

using namespace cuslice::fake;

namespace {

CUstreamCaptureStatus* driver_status(cudaStreamCaptureStatus* status) {
    return reinterpret_cast<CUstreamCaptureStatus*>(status);
}

cudaError_t info_with_edges(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                            cudaGraph_t* graph, const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                            size_t* count) {
    return in_context(CU_STREAM(cuStreamGetCaptureInfo, 12030), stream, driver_status(status),
                      reinterpret_cast<cuuint64_t*>(id), graph, dependencies,
                      reinterpret_cast<const CUgraphEdgeData**>(edges), count);
}

cudaError_t update_with_edges(cudaStream_t stream, cudaGraphNode_t* dependencies, const cudaGraphEdgeData* edges,
                              size_t count, unsigned flags) {
    return in_context(CU_STREAM(cuStreamUpdateCaptureDependencies, 12030), stream, dependencies,
                      same_layout<const CUgraphEdgeData>(edges), count, flags);
}

}  // namespace

#if CUSLICE_CUDART_VERSION >= 13000

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* count) {
    return info_with_edges(stream, status, id, graph, dependencies, edges, count);
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                const cudaGraphEdgeData* edges, size_t count, unsigned int flags) {
    return update_with_edges(stream, dependencies, edges, count, flags);
}

#else

extern "C" {
cudaError_t capture_info(cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*)
    CUSLICE_EXPORT_STREAM_AS(cudaStreamGetCaptureInfo);
cudaError_t capture_info_v2(cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*, cudaGraph_t*,
                            const cudaGraphNode_t**, size_t*) CUSLICE_EXPORT_STREAM_AS(cudaStreamGetCaptureInfo_v2);
cudaError_t capture_info_v3(cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*, cudaGraph_t*,
                            const cudaGraphNode_t**, const cudaGraphEdgeData**, size_t*)
    CUSLICE_EXPORT_STREAM_AS(cudaStreamGetCaptureInfo_v3);
cudaError_t update_capture(cudaStream_t, cudaGraphNode_t*, size_t, unsigned)
    CUSLICE_EXPORT_STREAM_AS(cudaStreamUpdateCaptureDependencies);
cudaError_t update_capture_v2(cudaStream_t, cudaGraphNode_t*, const cudaGraphEdgeData*, size_t, unsigned)
    CUSLICE_EXPORT_STREAM_AS(cudaStreamUpdateCaptureDependencies_v2);
}

cudaError_t capture_info(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id) {
    return capture_info_v2(stream, status, id, nullptr, nullptr, nullptr);
}

cudaError_t capture_info_v2(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                            cudaGraph_t* graph, const cudaGraphNode_t** dependencies, size_t* count) {
    return in_context(CU_STREAM(cuStreamGetCaptureInfo, 11030), stream, driver_status(status),
                      reinterpret_cast<cuuint64_t*>(id), graph, dependencies, count);
}

cudaError_t capture_info_v3(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                            cudaGraph_t* graph, const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                            size_t* count) {
    return info_with_edges(stream, status, id, graph, dependencies, edges, count);
}

cudaError_t update_capture(cudaStream_t stream, cudaGraphNode_t* dependencies, size_t count, unsigned flags) {
    return in_context(CU_STREAM(cuStreamUpdateCaptureDependencies, 11030), stream, dependencies, count, flags);
}

cudaError_t update_capture_v2(cudaStream_t stream, cudaGraphNode_t* dependencies, const cudaGraphEdgeData* edges,
                              size_t count, unsigned flags) {
    return update_with_edges(stream, dependencies, edges, count, flags);
}

#endif
