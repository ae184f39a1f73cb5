// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/stream_capture.h"

namespace cuslice::fake {

void begin_capture(Stream& stream, CUstreamCaptureMode mode, CUgraph graph) {
    const std::lock_guard hold(captures_lock);
    stream.capture = add_capture(stream.handle, mode, graph);
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

}  // namespace cuslice::fake
