// SPDX-License-Identifier: Apache-2.0
// Stream capture: what is submitted becomes nodes of a graph, in order.

#include <cstring>
#include <utility>

#include "fake/driver/stream_capture.h"
#include "fake/driver/stream_pair.h"

using namespace cuslice::fake;

namespace {

bool known(CUstreamCaptureMode mode) { return static_cast<unsigned>(mode) <= CU_STREAM_CAPTURE_MODE_RELAXED; }

CUresult begin_in(CUstream handle, CUgraph graph, CUstreamCaptureMode mode, DefaultStream form) {
    if (!known(mode))
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_STREAM(stream, handle, form);
    if (stream->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;  // documented: the legacy stream can't capture
    if (stream->capture != nullptr)
        return CUDA_ERROR_ILLEGAL_STATE;
    begin_capture(*stream, mode, graph);
    return CUDA_SUCCESS;
}

CUresult begin(CUstream handle, CUstreamCaptureMode mode, DefaultStream form) {
    return begin_in(handle, nullptr, mode, form);
}

/// Captured nodes go behind all nodes that the graph has, whichever of them `dependencies` names.
CUresult begin_to_graph(CUstream handle, CUgraph graph, const CUgraphNode* dependencies, const CUgraphEdgeData* edges,
                        size_t count, CUstreamCaptureMode mode, DefaultStream form) {
    CUSLICE_TRY(check_dependencies(graph, dependencies, count));
    // Into the body of a conditional node, but not into a child graph.
    if (graphs.find(graph)->is_child && graphs.find(graph)->around == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; edges != nullptr && i < count; i++) {
        constexpr CUgraphEdgeData kNone{};
        if (std::memcmp(&edges[i], &kNone, sizeof kNone) != 0)
            CUSLICE_UNSUPPORTED("cuStreamBeginCaptureToGraph with data of edges");
    }
    return begin_in(handle, graph, mode, form);
}

CUresult begin_oldest(CUstream handle, DefaultStream form) {
    return begin(handle, CU_STREAM_CAPTURE_MODE_GLOBAL, form);
}

CUresult end(CUstream handle, CUgraph* out, DefaultStream form) {
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_STREAM(stream, handle, form);
    if (stream->capture == nullptr)
        return CUDA_ERROR_ILLEGAL_STATE;
    const std::shared_ptr<Capture> capture = stream->capture;
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != std::this_thread::get_id()) {
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    }
    if (capture->origin != stream->handle)
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    end_capture(capture);
    *out = nullptr;
    if (!capture->active()) {
        if (!capture->into_given)
            destroy_graph(capture->graph);
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    *out = capture->graph;
    return CUDA_SUCCESS;
}

CUresult is_capturing(CUstream handle, CUstreamCaptureStatus* status, DefaultStream form) {
    if (status == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_STREAM(stream, handle, form);
    const auto capture = capture_of(*stream);
    *status = capture != nullptr ? capture->status.load() : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

CUresult info(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id, DefaultStream form) {
    CUSLICE_TRY(is_capturing(handle, status, form));
    Stream* stream = nullptr;
    find_stream(handle, form, stream);
    if (id != nullptr && stream->capture != nullptr)
        *id = stream->capture->id;
    return CUDA_SUCCESS;
}

/// The nodes that the next one will follow: the last alone, since captures here are sequences.
CUresult info_2(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                const CUgraphNode** nodes, size_t* count, DefaultStream form) {
    CUSLICE_TRY(info(handle, status, id, form));
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return CUDA_SUCCESS;
    Stream* stream = nullptr;
    find_stream(handle, form, stream);
    const Graph& captured = *graphs.find(stream->capture->graph);
    const bool any = !captured.nodes.empty();
    if (graph != nullptr)
        *graph = stream->capture->graph;
    if (nodes != nullptr)
        *nodes = any ? &captured.nodes.back() : nullptr;
    if (count != nullptr)
        *count = any ? 1 : 0;
    return CUDA_SUCCESS;
}

/// The data of the one edge that there is at most. It parallels the nodes: callers read as many.
constexpr CUgraphEdgeData kPlainEdge{};

CUresult info_3(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                const CUgraphNode** nodes, const CUgraphEdgeData** edges, size_t* count, DefaultStream form) {
    if (edges == nullptr)
        return info_2(handle, status, id, graph, nodes, count, form);
    if (nodes == nullptr)
        return CUDA_ERROR_INVALID_VALUE;  // documented
    size_t known = 0;
    *edges = nullptr;
    const CUresult result = info_2(handle, status, id, graph, nodes, &known, form);
    if (result != CUDA_SUCCESS || *status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return result;
    if (known != 0)
        *edges = &kPlainEdge;
    if (count != nullptr)
        *count = known;
    return CUDA_SUCCESS;
}

}  // namespace

CUSLICE_STREAM_PAIR(cuStreamBeginCapture, begin_oldest, stream)
CUSLICE_STREAM_PAIR(cuStreamBeginCapture_v2, begin, stream, mode)
CUSLICE_STREAM_PAIR(cuStreamBeginCaptureToGraph, begin_to_graph, stream, graph, dependencies, edges, count, mode)
CUSLICE_STREAM_PAIR(cuStreamEndCapture, end, stream, graph)
CUSLICE_STREAM_PAIR(cuStreamIsCapturing, is_capturing, stream, status)
CUSLICE_STREAM_PAIR(cuStreamGetCaptureInfo, info, stream, status, id)
CUSLICE_STREAM_PAIR(cuStreamGetCaptureInfo_v2, info_2, stream, status, id, graph, nodes, count)
CUSLICE_STREAM_PAIR(cuStreamGetCaptureInfo_v3, info_3, stream, status, id, graph, nodes, edges, count)

CUSLICE_ENTRY(cuThreadExchangeStreamCaptureMode, mode) {
    if (mode == nullptr || !known(*mode))
        return CUDA_ERROR_INVALID_VALUE;
    std::swap(*mode, thread_capture_mode());
    return CUDA_SUCCESS;
}
