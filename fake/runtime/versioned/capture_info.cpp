// SPDX-License-Identifier: Apache-2.0
// State of a capture in progress. 12 has three forms of the query, with 3, 6 and 7 arguments; 13 kept the last. Built
// twice: legacy and per-thread default stream (_ptsz).

#include "fake/runtime/versioned/form.h"

using namespace cuslice::fake;

#if CUSLICE_CUDART_VERSION >= 13000

CUSLICE_FORWARD_STREAM(cudaStreamGetCaptureInfo, cuStreamGetCaptureInfo, 12030, stream, status, id, graph, dependencies,
                       edges, count)
CUSLICE_FORWARD_STREAM(cudaStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies, 12030, stream,
                       dependencies, edges, count, flags)

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

CUSLICE_FORWARD_STREAM(capture_info_v2, cuStreamGetCaptureInfo, 11030, stream, status, id, graph, dependencies, count)
CUSLICE_FORWARD_STREAM(capture_info_v3, cuStreamGetCaptureInfo, 12030, stream, status, id, graph, dependencies, edges,
                       count)
CUSLICE_FORWARD_STREAM(update_capture, cuStreamUpdateCaptureDependencies, 11030, stream, dependencies, count, flags)
CUSLICE_FORWARD_STREAM(update_capture_v2, cuStreamUpdateCaptureDependencies, 12030, stream, dependencies, edges, count,
                       flags)

#endif
