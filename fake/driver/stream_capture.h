// SPDX-License-Identifier: Apache-2.0
#pragma once
// Begins, finds and ends the capture that streams belong to.

#include "fake/driver/stream.h"

namespace cuslice::fake {

/// Starts one in a stream, into `graph` or a new graph; the stream has none.
void begin_capture(Stream& stream, CUstreamCaptureMode mode, CUgraph graph = nullptr);
/// The one that a stream belongs to; null if there is none. From any thread, as the driver tells any thread.
std::shared_ptr<Capture> capture_of(const Stream& stream);
/// Takes it off every stream that joined it. The graph stays.
void end_capture(const std::shared_ptr<Capture>& capture);

}  // namespace cuslice::fake
