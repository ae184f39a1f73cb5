// SPDX-License-Identifier: Apache-2.0
// How a thread treats captures during calls of cuslice's own.
#include "virtual_gpu/gpu/relaxed_captures.h"

#include <utility>

#include "tests/catch.h"

using namespace cuslice;

namespace {

CUstreamCaptureMode mode_now = CU_STREAM_CAPTURE_MODE_GLOBAL;
unsigned exchanges = 0;
CUresult answer = CUDA_SUCCESS;

CUresult CUDAAPI exchange(CUstreamCaptureMode* mode) {
    exchanges++;
    if (answer == CUDA_SUCCESS)
        std::swap(*mode, mode_now);
    return answer;
}

struct Slot {
    explicit Slot(void* function) { slot() = function; }
    ~Slot() { slot() = nullptr; }
    static void*& slot() {
        return cuslice_driver_slots[static_cast<size_t>(Function::cuThreadExchangeStreamCaptureMode)];
    }
};

}  // namespace

TEST_CASE("captures are relaxed during calls of our own, and afterwards what they were for the thread") {
    const Slot slot(reinterpret_cast<void*>(exchange));
    for (const auto own : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL}) {
        mode_now = own;
        {
            const RelaxedCaptures during;
            CHECK(mode_now == CU_STREAM_CAPTURE_MODE_RELAXED);
            {
                const RelaxedCaptures within;
                CHECK(mode_now == CU_STREAM_CAPTURE_MODE_RELAXED);
            }
            CHECK(mode_now == CU_STREAM_CAPTURE_MODE_RELAXED);
        }
        CHECK(mode_now == own);
    }
}

TEST_CASE("a mode that the driver didn't exchange is not put back, and a driver without modes not asked") {
    exchanges = 0;
    {
        const Slot slot(reinterpret_cast<void*>(exchange));
        answer = CUDA_ERROR_NOT_INITIALIZED;
        { const RelaxedCaptures during; }
        answer = CUDA_SUCCESS;
        CHECK(exchanges == 1);
    }
    { const RelaxedCaptures during; }
    CHECK(exchanges == 1);
}
