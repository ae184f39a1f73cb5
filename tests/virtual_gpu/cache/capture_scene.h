// SPDX-License-Identifier: Apache-2.0
// Streams that are captured, on a driver that a test makes up.
#pragma once

#include "tests/virtual_gpu/made_up_driver.h"
#include "virtual_gpu/cache/capture_tracker.h"

namespace cuslice::tests {

inline constexpr auto kActive = CU_STREAM_CAPTURE_STATUS_ACTIVE;
inline const CUstream kOne = stream(1), kOther = stream(2);

/// Two streams of a context that is current in this thread.
struct CaptureScene {
    CaptureScene() {
        driver.make(own);
        MadeUpDriver::stack() = {own};
        driver.contexts_of_streams = {{kOne, own}, {kOther, own}};
    }
    void begin(CUstream one, CaptureTracker::By by = CaptureTracker::By::known) {
        captures.may_begin(one, by);
        set(one, kActive);
        captures.began(one);
    }
    void set(CUstream one, CUstreamCaptureStatus status) {
        const std::lock_guard lock(driver.mutex);
        driver.capturing[one] = status;
    }
    /// Ends it by a call that cuslice sees.
    void end(CUstream one) {
        const uint64_t moment = captures.moment();
        set(one, CU_STREAM_CAPTURE_STATUS_NONE);
        captures.ended(one, moment);
    }
    unsigned asked() { return driver.calls_of("cuStreamIsCapturing"); }

    const CUcontext own = context(1);
    MadeUpDriver driver;
    CaptureTracker captures;
};

}  // namespace cuslice::tests
