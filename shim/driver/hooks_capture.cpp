// Streams that are captured into graphs: while there is one, caches neither wait for the GPU nor record events.
#include "shim/driver/export.h"
#include "shim/entry.h"
#include "virtual_gpu/driver/table.h"

namespace cuslice {

namespace {

bool watched() { return process().caches_anything() && !inside_hook; }

template <typename Call>
CUresult begin(CUstream stream, Call call) {
    if (!watched()) return call();
    Captures& captures = process().caches().captures();
    captures.may_begin(stream, Captures::By::known);
    const CUresult result = call();
    result == CUDA_SUCCESS ? captures.began(stream) : captures.failed(stream);
    return result;
}

// An error may have ended it, or not.
template <typename Call>
CUresult end(CUstream stream, Call call) {
    if (!watched()) return call();
    Captures& captures = process().caches().captures();
    const std::uint64_t moment = captures.moment();
    const CUresult result = call();
    result == CUDA_SUCCESS ? captures.ended(stream, moment) : captures.failed(stream);
    return result;
}

template <typename Call>
CUresult destroy(CUstream stream, Call call) {
    if (!watched() || process().caches().captures().none_known()) return call();
    Captures& captures = process().caches().captures();
    const std::uint64_t moment = captures.moment();
    const CUresult result = call();
    if (result == CUDA_SUCCESS) captures.ended(stream, moment);
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
    return end(stream, [&] { return CUSLICE_REAL(cuStreamEndCapture)(stream, graph); });
}

CUSLICE_HOOK cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
    if (ready() != Readiness::ready) return unavailable();
    return end(stream, [&] { return CUSLICE_REAL(cuStreamEndCapture_ptsz)(stream, graph); });
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
