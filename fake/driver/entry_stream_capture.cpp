// SPDX-License-Identifier: Apache-2.0
// Stream capture: what is submitted becomes nodes of a graph, each after what its stream captured before.

#include <mutex>
#include <utility>

#include "fake/driver/stream_capture.h"
#include "fake/driver/stream_pair.h"

using namespace cuslice::fake;

namespace {

bool known(CUstreamCaptureMode mode) { return static_cast<unsigned>(mode) <= CU_STREAM_CAPTURE_MODE_RELAXED; }

CUresult begin_in(CUstream handle, CUgraph graph, const Dependencies& after, CUstreamCaptureMode mode,
                  DefaultStream form) {
    if (!known(mode))
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_STREAM(stream, handle, form);
    if (stream->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;  // documented: the legacy stream can't capture
    if (stream->capture != nullptr)
        return CUDA_ERROR_ILLEGAL_STATE;
    begin_capture(*stream, mode, graph, after);
    return CUDA_SUCCESS;
}

CUresult begin(CUstream handle, CUstreamCaptureMode mode, DefaultStream form) {
    return begin_in(handle, nullptr, {}, mode, form);
}

CUresult begin_to_graph(CUstream handle, CUgraph graph, const CUgraphNode* dependencies, const CUgraphEdgeData* edges,
                        size_t count, CUstreamCaptureMode mode, DefaultStream form) {
    Dependencies after;
    CUSLICE_TRY(take_dependencies(graph, {dependencies, edges, count}, after));
    // Into the body of a conditional node, but not into a child graph.
    if (graphs.find(graph)->is_child && graphs.find(graph)->around == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    return begin_in(handle, graph, after, mode, form);
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
    const bool active = capture->active(), joined = all_joined(*capture, *stream);
    end_capture(capture);
    *out = nullptr;
    if (!active || !joined) {
        if (!capture->into_given)
            destroy_graph(capture->graph);
        return active ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
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

CUresult info_3(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                const CUgraphNode** nodes, const CUgraphEdgeData** edges, size_t* count, DefaultStream form) {
    if (edges != nullptr && nodes == nullptr)
        return CUDA_ERROR_INVALID_VALUE;  // documented
    CUSLICE_TRY(info(handle, status, id, form));
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return CUDA_SUCCESS;
    Stream* stream = nullptr;
    find_stream(handle, form, stream);
    const std::lock_guard hold(captures_lock);
    const auto capture = stream->capture.get();
    if (capture == nullptr) {  // another thread has ended it
        *status = CU_STREAM_CAPTURE_STATUS_NONE;
        return CUDA_SUCCESS;
    }
    // The program reads these arrays until its next call on the stream.
    const Dependencies& after = capture->after[stream->id];
    if (nodes != nullptr && edges == nullptr && after.has_data())
        return CUDA_ERROR_LOSSY_QUERY;
    if (graph != nullptr)
        *graph = capture->graph;
    if (nodes != nullptr)
        *nodes = after.size() != 0 ? after.nodes.data() : nullptr;
    if (edges != nullptr)
        *edges = after.size() != 0 ? after.edges.data() : nullptr;
    if (count != nullptr)
        *count = after.size();
    return CUDA_SUCCESS;
}

CUresult info_2(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                const CUgraphNode** nodes, size_t* count, DefaultStream form) {
    return info_3(handle, status, id, graph, nodes, nullptr, count, form);
}

CUresult update_2(CUstream handle, CUgraphNode* nodes, const CUgraphEdgeData* edges, size_t count, unsigned flags,
                  DefaultStream form) {
    if (flags != CU_STREAM_ADD_CAPTURE_DEPENDENCIES && flags != CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_STREAM(stream, handle, form);
    const auto capture = capture_of(*stream);
    if (capture == nullptr)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (!capture->active())
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    Dependencies after;
    CUSLICE_TRY(take_dependencies(capture->graph, {nodes, edges, count}, after));
    set_dependencies(*capture, *stream, after, flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES);
    return CUDA_SUCCESS;
}

CUresult update(CUstream handle, CUgraphNode* nodes, size_t count, unsigned flags, DefaultStream form) {
    return update_2(handle, nodes, nullptr, count, flags, form);
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

CUSLICE_STREAM_PAIR(cuStreamUpdateCaptureDependencies, update, stream, nodes, count, flags)
CUSLICE_STREAM_PAIR(cuStreamUpdateCaptureDependencies_v2, update_2, stream, nodes, edges, count, flags)

CUSLICE_ENTRY(cuThreadExchangeStreamCaptureMode, mode) {
    if (mode == nullptr || !known(*mode))
        return CUDA_ERROR_INVALID_VALUE;
    std::swap(*mode, thread_capture_mode());
    return CUDA_SUCCESS;
}
