#include "virtual_gpu/cache/captures.h"

#include "virtual_gpu/cache/current_context.h"

namespace cuslice {

namespace {

// Its address is the thread's own.
constinit thread_local char this_thread = 0;

bool is_default(CUstream stream) { return !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD; }

}  // namespace

void Captures::may_begin(CUstream stream, CUcontext context) {
    const Entry entry{stream, context, &this_thread};
    LockGuard lock(mutex_);
    for (const Entry& there : streams_)
        if (there.is(entry)) return;
    if (streams_.push_back(entry)) count_.store(streams_.size(), std::memory_order_release);
}

bool Captures::any_still() {
    for (;;) {
        Entry first{};
        {
            LockGuard lock(mutex_);
            if (streams_.size() == 0) return false;
            first = streams_[0];
        }
        if (goes_on(first)) return true;
        remove([&](const Entry& entry) { return entry.is(first); });
    }
}

void Captures::note_seen(const Entry& entry) {
    LockGuard lock(mutex_);
    for (Entry& there : streams_)
        if (there.is(entry)) there.seen = true;
}

// Without the lock, as the driver is asked: it documents that this ends no capture. What another thread is about to
// begin may not have begun; one's own has, or it has failed.
bool Captures::goes_on(const Entry& entry) {
    if (!entry.thread) return true;
    CUstream stream = entry.stream;
    if (is_default(stream)) {
        // Another thread has others by these handles. The legacy one can't be captured.
        if (entry.thread != &this_thread) return true;
        stream = CU_STREAM_PER_THREAD;
    }
    const CurrentContext during(entry.context);
    if (!during) return false;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    const CUresult result = CUSLICE_REAL(cuStreamIsCapturing)(stream, &status);
    if (result == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_NONE)
        return entry.thread != &this_thread && !entry.seen;
    if (result == CUDA_SUCCESS && !entry.seen) note_seen(entry);
    return result != CUDA_ERROR_INVALID_HANDLE && result != CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

}  // namespace cuslice
