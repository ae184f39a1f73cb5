// SPDX-License-Identifier: Apache-2.0
#pragma once
// Begins, finds and ends the capture that streams belong to, and what the next node of each depends on.

#include "fake/driver/event.h"
#include "fake/driver/stream.h"

namespace cuslice::fake {

/// Starts one in a stream, into a new graph, or into `graph` behind nodes of it; the stream has none.
void begin_capture(Stream& stream, CUstreamCaptureMode mode, CUgraph graph = nullptr, const Dependencies& after = {});
/// The one that a stream belongs to; null if there is none. From any thread, as the driver tells any thread.
std::shared_ptr<Capture> capture_of(const Stream& stream);
/// Takes it off every stream that joined it. The graph stays.
void end_capture(const std::shared_ptr<Capture>& capture);
/// True if nothing that another stream captured is left out of what the first one's next node would depend on.
bool all_joined(const Capture& capture, const Stream& origin);

/// A node of the capture's graph that `add` appends, given what it depends on; the stream's next one follows it.
/// CUDA_ERROR_STREAM_CAPTURE_INVALIDATED if the capture is, or its graph is gone.
CUresult capture_node(Stream& stream, const std::function<CUresult(CUgraph, const Dependencies&, CUgraphNode&)>& add);
/// Changes what the next node of a stream depends on that takes part.
void set_dependencies(Capture& capture, const Stream& stream, const Dependencies& after, bool added);

/// Records an event in a stream that captures: it stands for what the stream has captured, and is no node.
void record_in_capture(const std::shared_ptr<Capture>& capture, const Stream& stream, Event& event);
/// Has the stream wait for an event that was recorded in a capture: it joins that one. CUDA_ERROR_CAPTURED_EVENT if
/// that has ended, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED if it is, CUDA_ERROR_STREAM_CAPTURE_MERGE if the stream is in
/// another.
CUresult wait_in_capture(Stream& stream, const Event& event);

}  // namespace cuslice::fake
