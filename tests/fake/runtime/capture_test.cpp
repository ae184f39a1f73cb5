// SPDX-License-Identifier: Apache-2.0
// Stream capture and graphs, in the forms of both versions.

#include <cstddef>

#include "tests/fake/runtime/scenario.h"

using namespace cuslice::tests;

SCENARIO_IN_CHILD("a captured stream becomes a graph that runs") {
    cudaStream_t stream = nullptr;
    void* pointer = nullptr;
    unsigned char byte = 0;
    REQUIRE(RT(cudaStreamCreate)(&stream) == cudaSuccess);
    REQUIRE(RT(cudaMalloc)(&pointer, 4096) == cudaSuccess);
    REQUIRE(RT(cudaMemset)(pointer, 1, 4096) == cudaSuccess);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusInvalidated;
    CHECK(RT(cudaStreamIsCapturing)(stream, &status) == cudaSuccess);
    CHECK(status == cudaStreamCaptureStatusNone);
    REQUIRE(RT(cudaStreamBeginCapture)(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    CHECK(RT(cudaStreamIsCapturing)(stream, &status) == cudaSuccess);
    CHECK(status == cudaStreamCaptureStatusActive);
    unsigned long long id = 0;
    if (runtime_major() < 13) {
        const auto info =
            reinterpret_cast<cudaError_t (*)(cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*)>(
                runtime_function("cudaStreamGetCaptureInfo"));
        CHECK(info(stream, &status, &id) == cudaSuccess);
    } else {
        CHECK(RT(cudaStreamGetCaptureInfo)(stream, &status, &id, nullptr, nullptr, nullptr, nullptr) == cudaSuccess);
    }
    CHECK(id != 0);
    CHECK(RT(cudaMemsetAsync)(pointer, 2, 4096, stream) == cudaSuccess);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    REQUIRE(RT(cudaStreamEndCapture)(stream, &graph) == cudaSuccess);
    CHECK(RT(cudaMemcpy)(&byte, pointer, 1, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(byte == 1);
    size_t nodes = 0;
    CHECK(RT(cudaGraphGetNodes)(graph, nullptr, &nodes) == cudaSuccess);
    CHECK(nodes == 1);
    REQUIRE(instantiate(&executable, graph) == cudaSuccess);
    CHECK(RT(cudaGraphLaunch)(executable, stream) == cudaSuccess);
    CHECK(RT(cudaStreamSynchronize)(stream) == cudaSuccess);
    CHECK(RT(cudaMemcpy)(&byte, pointer, 1, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(byte == 2);
    CHECK(RT(cudaGraphExecDestroy)(executable) == cudaSuccess);
    CHECK(RT(cudaGraphDestroy)(graph) == cudaSuccess);
}
