// SPDX-License-Identifier: Apache-2.0
// Streams that are captured into graphs: while there is one, nobody waits for the GPU or records an event.
#include "shim/driver/export.h"
#include "shim/entry.h"
#include "virtual_gpu/driver/table.h"

namespace cuslice {

namespace {

CaptureTracker& tracker() { return process().caches().captures(); }

constexpr auto begin = [](auto real, CUstream stream, auto... arguments) {
    if (!meets_watched_work())
        return real(stream, arguments...);
    CaptureTracker& captures = tracker();
    captures.may_begin(stream, CaptureTracker::By::known);
    const CUresult result = real(stream, arguments...);
    result == CUDA_SUCCESS ? captures.began(stream) : captures.failed(stream);
    return result;
};

// An error may have ended it, or not.
constexpr auto end = [](auto real, CUstream stream, CUgraph* graph) {
    if (!meets_watched_work())
        return real(stream, graph);
    CaptureTracker& captures = tracker();
    const uint64_t moment = captures.moment();
    const CUresult result = real(stream, graph);
    result == CUDA_SUCCESS ? captures.ended(stream, moment) : captures.failed(stream);
    return result;
};

// Another thread may be asking whether the stream is still captured, of which the program knows nothing.
constexpr auto destroy = [](auto real, CUstream stream) {
    if (!meets_watched_work() || tracker().none_asked())
        return real(stream);
    CaptureTracker& captures = tracker();
    const uint64_t moment = captures.moment();
    captures.ends(stream);
    const CUresult result = real(stream);
    captures.ended_or_not(stream, result == CUDA_SUCCESS, moment);
    return result;
};

}  // namespace

CUSLICE_HOOK_FORM(cuStreamBeginCapture, begin, stream)
CUSLICE_HOOK_FORM(cuStreamBeginCapture_ptsz, begin, stream)
CUSLICE_HOOK_FORM(cuStreamBeginCapture_v2, begin, stream, mode)
CUSLICE_HOOK_FORM(cuStreamBeginCapture_v2_ptsz, begin, stream, mode)
CUSLICE_HOOK_FORM(cuStreamBeginCaptureToGraph, begin, stream, graph, nodes, edges, count, mode)
CUSLICE_HOOK_FORM(cuStreamBeginCaptureToGraph_ptsz, begin, stream, graph, nodes, edges, count, mode)
CUSLICE_HOOK_FORM(cuStreamEndCapture, end, stream, graph)
CUSLICE_HOOK_FORM(cuStreamEndCapture_ptsz, end, stream, graph)
CUSLICE_HOOK_FORM(cuStreamDestroy, destroy, stream)
CUSLICE_HOOK_FORM(cuStreamDestroy_v2, destroy, stream)

}  // namespace cuslice
