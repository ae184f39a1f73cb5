// SPDX-License-Identifier: Apache-2.0
// Streams, events and callbacks.

#include <atomic>

#include "tests/fake/runtime/scenario.h"

using namespace cuslice::tests;

SCENARIO_IN_CHILD("a stream has the flags and the priority it was made with") {
    cudaStream_t stream = nullptr;
    int least = 0;
    int greatest = 0;
    REQUIRE(RT(cudaDeviceGetStreamPriorityRange)(&least, &greatest) == cudaSuccess);
    REQUIRE(RT(cudaStreamCreateWithPriority)(&stream, cudaStreamNonBlocking, greatest) == cudaSuccess);
    unsigned flags = 99;
    int priority = 99;
    CHECK(RT(cudaStreamGetFlags)(stream, &flags) == cudaSuccess);
    CHECK(flags == cudaStreamNonBlocking);
    CHECK(RT(cudaStreamGetPriority)(stream, &priority) == cudaSuccess);
    CHECK(priority == greatest);
    CHECK(RT(cudaStreamQuery)(stream) == cudaSuccess);
    CHECK(RT(cudaStreamDestroy)(stream) == cudaSuccess);
    CHECK(RT(cudaStreamDestroy)(stream) != cudaSuccess);
}

SCENARIO_IN_CHILD("events mark work and measure time") {
    cudaStream_t stream = nullptr;
    cudaEvent_t start = nullptr;
    cudaEvent_t end = nullptr;
    cudaEvent_t untimed = nullptr;
    REQUIRE(RT(cudaStreamCreate)(&stream) == cudaSuccess);
    REQUIRE(RT(cudaEventCreate)(&start) == cudaSuccess);
    REQUIRE(RT(cudaEventCreateWithFlags)(&end, cudaEventBlockingSync) == cudaSuccess);
    REQUIRE(RT(cudaEventCreateWithFlags)(&untimed, cudaEventDisableTiming) == cudaSuccess);
    CHECK(RT(cudaEventRecord)(start, stream) == cudaSuccess);
    CHECK(RT(cudaEventRecord)(end, stream) == cudaSuccess);
    CHECK(RT(cudaEventRecord)(untimed, stream) == cudaSuccess);
    CHECK(RT(cudaEventSynchronize)(end) == cudaSuccess);
    CHECK(RT(cudaEventQuery)(start) == cudaSuccess);
    float milliseconds = -1;
    CHECK(RT(cudaEventElapsedTime)(&milliseconds, start, end) == cudaSuccess);
    CHECK(milliseconds >= 0);
    CHECK(RT(cudaEventElapsedTime)(&milliseconds, start, untimed) == cudaErrorInvalidResourceHandle);
    CHECK(RT(cudaStreamWaitEvent)(nullptr, end, 0) == cudaSuccess);
    CHECK(RT(cudaEventDestroy)(start) == cudaSuccess);
    CHECK(RT(cudaEventDestroy)(end) == cudaSuccess);
}

namespace {

struct Calls {
    std::atomic<int> functions{0};
    std::atomic<int> callbacks{0};
    cudaStream_t stream = nullptr;
};

void count_function(void* data) { ++static_cast<Calls*>(data)->functions; }

void count_callback(cudaStream_t stream, cudaError_t status, void* data) {
    auto* const calls = static_cast<Calls*>(data);
    if (status == cudaSuccess && stream == calls->stream)
        ++calls->callbacks;
}

}  // namespace

SCENARIO_IN_CHILD("host functions and callbacks are called in the stream") {
    Calls calls;
    REQUIRE(RT(cudaStreamCreate)(&calls.stream) == cudaSuccess);
    CHECK(RT(cudaLaunchHostFunc)(calls.stream, count_function, &calls) == cudaSuccess);
    CHECK(RT(cudaStreamAddCallback)(calls.stream, count_callback, &calls, 0) == cudaSuccess);
    CHECK(RT(cudaStreamSynchronize)(calls.stream) == cudaSuccess);
    CHECK(calls.functions == 1);
    CHECK(calls.callbacks == 1);
    CHECK(RT(cudaStreamAddCallback)(calls.stream, nullptr, &calls, 0) == cudaErrorInvalidValue);
}
