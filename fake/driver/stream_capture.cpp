// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/stream_capture.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

namespace cuslice::fake {

namespace {

/// These nodes and all that they depend on.
std::unordered_set<CUgraphNode> with_ancestors(const Dependencies& nodes) {
    std::unordered_set<CUgraphNode> found;
    std::vector<CUgraphNode> open = nodes.nodes;
    while (!open.empty()) {
        const CUgraphNode next = open.back();
        open.pop_back();
        const GraphNode* const node = graph_nodes.find(next);
        if (node != nullptr && found.insert(next).second)
            open.insert(open.end(), node->after.nodes.begin(), node->after.nodes.end());
    }
    return found;
}

}  // namespace

void begin_capture(Stream& stream, CUstreamCaptureMode mode, CUgraph graph, const Dependencies& after) {
    const std::lock_guard hold(captures_lock);
    const auto capture = add_capture(stream.handle, mode, graph);
    capture->after[stream.id] = after;
    stream.capture = capture;
}

std::shared_ptr<Capture> capture_of(const Stream& stream) {
    const std::lock_guard hold(captures_lock);
    return stream.capture.get();
}

void end_capture(const std::shared_ptr<Capture>& capture) {
    const std::lock_guard hold(captures_lock);
    each_stream([&](Stream& stream) {
        if (stream.capture == capture)
            stream.capture = nullptr;
    });
    remove_capture(capture);
}

bool all_joined(const Capture& capture, const Stream& origin) {
    const std::lock_guard hold(captures_lock);
    const auto joined = with_ancestors(capture.after.at(origin.id));
    return std::all_of(capture.after.begin(), capture.after.end(), [&](const auto& one) {
        const std::vector<CUgraphNode>& last = one.second.nodes;
        return std::all_of(last.begin(), last.end(), [&](CUgraphNode node) {
            return joined.contains(node) || graph_nodes.find(node) == nullptr;
        });
    });
}

CUresult capture_node(Stream& stream, const std::function<CUresult(CUgraph, const Dependencies&, CUgraphNode&)>& add) {
    const auto capture = stream.capture.get();
    if (capture == nullptr || !capture->active())
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    const std::lock_guard hold(captures_lock);
    Dependencies& after = capture->after[stream.id];
    CUgraphNode node = nullptr;
    if (const CUresult bad = add(capture->graph, after, node); bad != CUDA_SUCCESS)
        return bad;
    after = {};
    after.add(node);
    return CUDA_SUCCESS;
}

void set_dependencies(Capture& capture, const Stream& stream, const Dependencies& after, bool added) {
    const std::lock_guard hold(captures_lock);
    Dependencies& now = capture.after[stream.id];
    if (!added)
        now = {};
    now.add(after);
}

void record_in_capture(const std::shared_ptr<Capture>& capture, const Stream& stream, Event& event) {
    const std::lock_guard hold(captures_lock);
    event.captured = true;
    event.capture = capture;
    event.after = capture->after[stream.id];
}

CUresult wait_in_capture(Stream& stream, const Event& event) {
    const std::lock_guard hold(captures_lock);
    const auto of_event = event.capture.lock(), of_stream = stream.capture.get();
    if (of_event == nullptr)
        return CUDA_ERROR_CAPTURED_EVENT;
    if (!of_event->active())
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream.legacy)
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    if (of_stream != nullptr && of_stream != of_event) {
        of_stream->invalidate();
        of_event->invalidate();
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    if (of_stream == nullptr)
        stream.capture = of_event;
    of_event->after[stream.id].add(event.after);
    return CUDA_SUCCESS;
}

}  // namespace cuslice::fake
