// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/capture.h"

#include <set>

namespace cuslice::fake {

constinit std::atomic<int> captures_in_progress{0};
constinit std::mutex captures_lock;

namespace {

std::atomic<uint64_t> last_id{0};
thread_local constinit CUstreamCaptureMode mode_of_thread = CU_STREAM_CAPTURE_MODE_GLOBAL;

auto& captures() {
    static auto* all = new std::set<std::shared_ptr<Capture>>;
    return *all;
}

bool forbids(const Capture& capture) {
    if (!capture.active() || capture.mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return false;
    if (mode_of_thread == CU_STREAM_CAPTURE_MODE_RELAXED)
        return false;
    if (capture.thread == std::this_thread::get_id())
        return true;
    return capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL && mode_of_thread == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

}  // namespace

CUstreamCaptureMode& thread_capture_mode() { return mode_of_thread; }

std::shared_ptr<Capture> add_capture(CUstream origin, CUstreamCaptureMode mode, CUgraph graph) {
    auto capture = std::make_shared<Capture>();
    capture->mode = mode;
    capture->id = ++last_id;
    capture->thread = std::this_thread::get_id();
    capture->origin = origin;
    capture->into_given = graph != nullptr;
    capture->graph = graph != nullptr ? graph : graphs.create().first;
    captures().insert(capture);
    captures_in_progress++;
    return capture;
}

void remove_capture(const std::shared_ptr<Capture>& capture) {
    if (captures().erase(capture) != 0)
        captures_in_progress--;
}

CUresult refuse_unsafe_now() {
    const std::lock_guard hold(captures_lock);
    CUresult result = CUDA_SUCCESS;
    for (const auto& capture : captures()) {
        if (!forbids(*capture))
            continue;
        capture->invalidate();
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return result;
}

}  // namespace cuslice::fake
