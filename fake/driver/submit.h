// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gives work to streams, or to the graph that they capture into.

#include "fake/driver/event.h"
#include "fake/driver/stream.h"

namespace cuslice::fake {

/// Runs the task in the stream's order, or makes it a node of the graph that is being captured.
CUresult submit(Stream& stream, NodeWork work);
/// Runs the task in the stream's order. For work that has no place in a graph: a capture that another thread begins
/// meanwhile comes after it.
CUresult enqueue(Stream& stream, CUgraphNodeType type, Task task, const WorkQueue::Needs& needs = {});
/// submit() for a host function.
CUresult submit_host(Stream& stream, NodeWork work);

/// Records the event in a stream that doesn't capture, or has it wait for one that wasn't captured.
CUresult record_in_stream(Stream& stream, Event& event);
void wait_in_stream(Stream& stream, const Event& event);

/// Waits for the stream; CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (and the capture is invalid) while it captures.
CUresult synchronize(Stream& stream);

/// An operation that no capture allows: invalidates the one in progress.
CUresult refuse_in_capture(Stream& stream);

}  // namespace cuslice::fake
