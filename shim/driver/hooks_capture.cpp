// Streams that are captured into graphs: while there is one, caches neither wait for the GPU nor record events.
#include "shim/driver/export.h"
#include "shim/entry.h"
#include "virtual_gpu/driver/table.h"

namespace cuslice {

namespace {

CUcontext current_context() {
    CUcontext context = nullptr;
    CUSLICE_REAL(cuCtxGetCurrent)(&context);
    return context;
}

template <typename Call>
CUresult begin(CUstream stream, Call call) {
    // Before the driver's call: a free of another thread must not ask the GPU in between.
    const bool watched = process().caches_anything() && !inside_hook;
    const CUcontext context = watched ? current_context() : nullptr;
    if (watched) process().caches().captures().began(stream, context);
    const CUresult result = call();
    if (watched && result != CUDA_SUCCESS) process().caches().captures().ended(stream, context);
    return result;
}

template <typename Call, typename Query>
CUresult end(CUstream stream, Call call, Query query) {
    const CUresult result = call();
    if (!process().caches_anything() || inside_hook) return result;
    // An error may have ended it, or not.
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (result == CUDA_SUCCESS || query(&status) != CUDA_SUCCESS || status == CU_STREAM_CAPTURE_STATUS_NONE)
        process().caches().captures().ended(stream, current_context());
    return result;
}

template <typename Call>
CUresult destroy(CUstream stream, Call call) {
    const CUresult result = call();
    if (result == CUDA_SUCCESS && process().caches_anything() && !inside_hook)
        process().caches().captures().ended(stream, current_context());
    return result;
}

}  // namespace

CUSLICE_HOOK cuStreamBeginCapture(CUstream stream) {
    if (ready() != Readiness::ready) return unavailable();
    return begin(stream, [&] { return CUSLICE_REAL(cuStreamBeginCapture)(stream); });
}

CUSLICE_HOOK cuStreamBeginCapture_ptsz(CUstream stream) {
    if (ready() != Readiness::ready) return unavailable();
    return begin(stream, [&] { return CUSLICE_REAL(cuStreamBeginCapture_ptsz)(stream); });
}

CUSLICE_HOOK cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
    if (ready() != Readiness::ready) return unavailable();
    return begin(stream, [&] { return CUSLICE_REAL(cuStreamBeginCapture_v2)(stream, mode); });
}

CUSLICE_HOOK cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
    if (ready() != Readiness::ready) return unavailable();
    return begin(stream, [&] { return CUSLICE_REAL(cuStreamBeginCapture_v2_ptsz)(stream, mode); });
}

CUSLICE_HOOK cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* nodes,
                                         const CUgraphEdgeData* edges, size_t count, CUstreamCaptureMode mode) {
    if (ready() != Readiness::ready) return unavailable();
    return begin(stream,
                 [&] { return CUSLICE_REAL(cuStreamBeginCaptureToGraph)(stream, graph, nodes, edges, count, mode); });
}

CUSLICE_HOOK cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode* nodes,
                                              const CUgraphEdgeData* edges, size_t count, CUstreamCaptureMode mode) {
    if (ready() != Readiness::ready) return unavailable();
    return begin(stream, [&] {
        return CUSLICE_REAL(cuStreamBeginCaptureToGraph_ptsz)(stream, graph, nodes, edges, count, mode);
    });
}

CUSLICE_HOOK cuStreamEndCapture(CUstream stream, CUgraph* graph) {
    if (ready() != Readiness::ready) return unavailable();
    return end(
        stream, [&] { return CUSLICE_REAL(cuStreamEndCapture)(stream, graph); },
        [&](CUstreamCaptureStatus* status) { return CUSLICE_REAL(cuStreamIsCapturing)(stream, status); });
}

CUSLICE_HOOK cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
    if (ready() != Readiness::ready) return unavailable();
    return end(
        stream, [&] { return CUSLICE_REAL(cuStreamEndCapture_ptsz)(stream, graph); },
        [&](CUstreamCaptureStatus* status) { return CUSLICE_REAL(cuStreamIsCapturing_ptsz)(stream, status); });
}

CUSLICE_HOOK cuStreamDestroy(CUstream stream) {
    if (ready() != Readiness::ready) return unavailable();
    return destroy(stream, [&] { return CUSLICE_REAL(cuStreamDestroy)(stream); });
}

CUSLICE_HOOK cuStreamDestroy_v2(CUstream stream) {
    if (ready() != Readiness::ready) return unavailable();
    return destroy(stream, [&] { return CUSLICE_REAL(cuStreamDestroy_v2)(stream); });
}

}  // namespace cuslice
