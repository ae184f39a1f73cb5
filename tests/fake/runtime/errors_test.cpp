// SPDX-License-Identifier: Apache-2.0
// Names and texts of errors, and the last error of a thread.

#include <future>

#include "tests/fake/runtime/scenario.h"

using namespace cuslice::tests;

SCENARIO_IN_CHILD("every error has the name that its enumerator has") {
#define ERROR(name, text)                                    \
    CHECK(std::string(RT(cudaGetErrorName)(name)) == #name); \
    CHECK(std::string(RT(cudaGetErrorString)(name)) == text);
#include "fake/runtime/errors.def"
#undef ERROR
    CHECK(std::string(RT(cudaGetErrorString)(cudaErrorMemoryAllocation)) == "out of memory");
    CHECK(std::string(RT(cudaGetErrorName)(static_cast<cudaError_t>(11))) == "unrecognized error code");
    CHECK(std::string(RT(cudaGetErrorString)(static_cast<cudaError_t>(-1))) == "unrecognized error code");
}

SCENARIO_IN_CHILD("the last error stays until it is asked for") {
    void* pointer = nullptr;
    CHECK(RT(cudaGetLastError)() == cudaSuccess);
    CHECK(RT(cudaSetDevice)(99) == cudaErrorInvalidDevice);
    CHECK(RT(cudaMalloc)(&pointer, 4096) == cudaSuccess);
    CHECK(RT(cudaPeekAtLastError)() == cudaErrorInvalidDevice);
    CHECK(RT(cudaGetLastError)() == cudaErrorInvalidDevice);
    CHECK(RT(cudaGetLastError)() == cudaSuccess);
    CHECK(RT(cudaMemcpy)(pointer, &pointer, 8, static_cast<cudaMemcpyKind>(7)) == cudaErrorInvalidMemcpyDirection);
    CHECK(RT(cudaGetLastError)() == cudaErrorInvalidMemcpyDirection);
}

SCENARIO_IN_CHILD("an error that ends the context stays until the device is reset",
                  Machine{.more = {"CUSLICE_FAKE_INJECT=cuMemcpyHtoD_v2:1=700"}}) {
    void* pointer = nullptr;
    REQUIRE(RT(cudaMalloc)(&pointer, 4096) == cudaSuccess);
    CHECK(RT(cudaMemcpy)(pointer, &pointer, 8, cudaMemcpyHostToDevice) == cudaErrorIllegalAddress);
    CHECK(RT(cudaGetLastError)() == cudaErrorIllegalAddress);
    CHECK(RT(cudaSetDevice)(99) == cudaErrorInvalidDevice);
    CHECK(RT(cudaGetLastError)() == cudaErrorIllegalAddress);
    CHECK(RT(cudaDeviceReset)() == cudaSuccess);
    CHECK(RT(cudaGetLastError)() == cudaSuccess);
}

SCENARIO_IN_CHILD("what the driver says at the start is what every call says",
                  Machine{.more = {"CUSLICE_FAKE_INJECT=cuInit:1=802"}}) {
    int number = 7;
    CHECK(RT(cudaGetDeviceCount)(&number) == cudaErrorSystemNotReady);
    CHECK(number == 0);
    CHECK(RT(cudaFree)(nullptr) == cudaErrorSystemNotReady);
}

namespace {

void wait_for(void* released) { static_cast<std::future<void>*>(released)->wait(); }

}  // namespace

SCENARIO_IN_CHILD("work that is not ready is no error to remember") {
    std::promise<void> release;
    std::future<void> released = release.get_future();
    cudaStream_t stream = nullptr;
    cudaEvent_t event = nullptr;
    REQUIRE(RT(cudaStreamCreateWithFlags)(&stream, cudaStreamNonBlocking) == cudaSuccess);
    REQUIRE(RT(cudaEventCreate)(&event) == cudaSuccess);
    REQUIRE(RT(cudaLaunchHostFunc)(stream, wait_for, &released) == cudaSuccess);
    REQUIRE(RT(cudaEventRecord)(event, stream) == cudaSuccess);
    CHECK(RT(cudaStreamQuery)(stream) == cudaErrorNotReady);
    CHECK(RT(cudaEventQuery)(event) == cudaErrorNotReady);
    CHECK(RT(cudaGetLastError)() == cudaSuccess);
    release.set_value();
    CHECK(RT(cudaStreamSynchronize)(stream) == cudaSuccess);
    CHECK(RT(cudaEventQuery)(event) == cudaSuccess);
}
