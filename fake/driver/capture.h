// SPDX-License-Identifier: Apache-2.0
#pragma once
// Captures in progress, and what they forbid meanwhile.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "fake/driver/graph.h"
#include "fake/driver/sync.h"

namespace cuslice::fake {

struct Capture {
    std::atomic<CUstreamCaptureStatus> status{CU_STREAM_CAPTURE_STATUS_ACTIVE};
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    uint64_t id = 0;
    std::thread::id thread;
    CUstream origin = nullptr;  // the stream that began it, and alone can end it
    CUgraph graph = nullptr;
    bool into_given = false;  // a graph of the program's, which stays if the capture fails
    /// The next node's dependencies in each stream that took part, also in one that has ended, by the stream's id.
    /// Guarded by captures_lock.
    std::map<uint64_t, Dependencies> after;

    bool active() const { return status.load() == CU_STREAM_CAPTURE_STATUS_ACTIVE; }
    void invalidate() { status = CU_STREAM_CAPTURE_STATUS_INVALIDATED; }
};

/// The capture that a stream is part of, if any. Other threads look at it and end it: what is got stays as long as it
/// is held.
class CaptureOfStream {
  public:
    CaptureOfStream() = default;
    CaptureOfStream(CaptureOfStream&& other) noexcept : capture_(other.get()) {}
    CaptureOfStream& operator=(std::shared_ptr<Capture> capture) {
        const std::lock_guard hold(lock_);
        capture_.swap(capture);
        return *this;
    }
    std::shared_ptr<Capture> get() const {
        const std::lock_guard hold(lock_);
        return capture_;
    }
    operator std::shared_ptr<Capture>() const { return get(); }
    std::shared_ptr<Capture> operator->() const { return get(); }
    bool operator==(const std::shared_ptr<Capture>& other) const { return get() == other; }

  private:
    mutable SpinLock lock_;
    std::shared_ptr<Capture> capture_;
};

/// Captures that are in progress in the process, relaxed ones included.
extern std::atomic<int> captures_in_progress;

/// Guards the captures in progress, and the membership of streams in them.
extern std::mutex captures_lock;
/// A new one, into `graph` or a new graph if that is null, and its end; the graph stays. With the lock held.
std::shared_ptr<Capture> add_capture(CUstream origin, CUstreamCaptureMode mode, CUgraph graph);
void remove_capture(const std::shared_ptr<Capture>& capture);

/// How this thread treats captures of others: cuThreadExchangeStreamCaptureMode.
CUstreamCaptureMode& thread_capture_mode();

CUresult refuse_unsafe_now();

/// First check of every call that a capture may forbid: the call then fails, and the capture becomes invalid
/// (cuThreadExchangeStreamCaptureMode documents in which mode). Few of these calls are documented: docs/results/
/// lists those that an H200's driver forbids, as lab/hardware/captures.cpp finds them.
inline CUresult refuse_unsafe() {
    return captures_in_progress.load(std::memory_order_relaxed) == 0 ? CUDA_SUCCESS : refuse_unsafe_now();
}

}  // namespace cuslice::fake
