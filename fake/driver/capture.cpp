#include "fake/driver/capture.h"

#include <mutex>
#include <set>

#include "fake/driver/stream.h"

namespace cuslice::fake {

constinit std::atomic<int> captures_in_progress{0};

namespace {

constinit std::mutex captures_lock;
std::atomic<std::uint64_t> last_id{0};
thread_local constinit CUstreamCaptureMode mode_of_thread = CU_STREAM_CAPTURE_MODE_GLOBAL;

std::set<std::shared_ptr<Capture>>& captures() {
    static auto* all = new std::set<std::shared_ptr<Capture>>;
    return *all;
}

bool forbids(const Capture& capture) {
    if (!capture.active() || capture.mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
    if (mode_of_thread == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
    if (capture.thread == std::this_thread::get_id()) return true;
    return capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL && mode_of_thread == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

}  // namespace

CUstreamCaptureMode& thread_capture_mode() { return mode_of_thread; }

void begin_capture(Stream& stream, CUstreamCaptureMode mode) {
    auto capture = std::make_shared<Capture>();
    capture->mode = mode;
    capture->id = ++last_id;
    capture->thread = std::this_thread::get_id();
    capture->origin = stream.handle;
    capture->graph = graphs.create().first;
    const std::lock_guard hold(captures_lock);
    stream.capture = capture;
    captures().insert(std::move(capture));
    captures_in_progress++;
}

std::shared_ptr<Capture> capture_of(const Stream& stream) {
    const std::lock_guard hold(captures_lock);
    return stream.capture;
}

void end_capture(const std::shared_ptr<Capture>& capture) {
    const std::lock_guard hold(captures_lock);
    contexts.each([&](CUcontext, Context& context) {
        each_stream(context, [&](Stream& stream) {
            if (stream.capture == capture) stream.capture = nullptr;
        });
    });
    if (captures().erase(capture) != 0) captures_in_progress--;
}

CUresult refuse_unsafe_now() {
    const std::lock_guard hold(captures_lock);
    CUresult result = CUDA_SUCCESS;
    for (const auto& capture : captures()) {
        if (!forbids(*capture)) continue;
        capture->invalidate();
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return result;
}

}  // namespace cuslice::fake
