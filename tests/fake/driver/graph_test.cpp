// SPDX-License-Identifier: Apache-2.0
// Capture: what is submitted is not done, until the graph is launched.

#include <thread>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

// The array of edge data parallels that of the nodes: a caller reads as many, as NVIDIA's Python bindings do.
static void expect_edges(const Report& report, CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUgraphNode* nodes = nullptr;
    const CUgraphEdgeData* edges = nullptr;
    size_t count = 0;
    EXPECT_EQUAL(cuStreamGetCaptureInfo_v3(stream, &status, nullptr, nullptr, &nodes, &edges, &count), CUDA_SUCCESS);
    EXPECT_EQUAL(count, size_t{1});
    EXPECT(nodes != nullptr && edges != nullptr);
    EXPECT(edges != nullptr && edges->type == 0 && edges->from_port == 0 && edges->to_port == 0);
    EXPECT_EQUAL(cuStreamGetCaptureInfo_v3(stream, &status, nullptr, nullptr, nullptr, &edges, &count),
                 CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("captured work is done when the graph is launched, as often as that is") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUstream stream = nullptr;
              CUdeviceptr a = 0, b = 0;
              CUgraph graph = nullptr;
              CUgraphExec exec = nullptr;
              CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
              int value = 0;
              size_t nodes = 0;
              EXPECT_EQUAL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAlloc(&a, 512), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAlloc(&b, 512), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemsetD32(a, 1, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemsetD32(b, 2, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_ILLEGAL_STATE);
              EXPECT_EQUAL(cuStreamIsCapturing(stream, &status), CUDA_SUCCESS);
              EXPECT_EQUAL(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
              EXPECT_EQUAL(cuMemcpyDtoDAsync(b, a, 4, stream), CUDA_SUCCESS);
              expect_edges(report, stream);
              EXPECT_EQUAL(cuMemsetD32Async(a, 9, 1, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyDtoH(&value, b, 4), CUDA_SUCCESS);
              EXPECT_EQUAL(value, 2);  // nothing was done
              EXPECT_EQUAL(cuGraphGetNodes(graph, nullptr, &nodes), CUDA_SUCCESS);
              EXPECT_EQUAL(nodes, size_t{2});
              EXPECT_EQUAL(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphDestroy(graph), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
              for (const int expected : {1, 9}) {
                  EXPECT_EQUAL(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuStreamSynchronize(stream), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemcpyDtoH(&value, b, 4), CUDA_SUCCESS);
                  EXPECT_EQUAL(value, expected);
              }
              EXPECT_EQUAL(cuGraphExecDestroy(exec), CUDA_SUCCESS);
          }) == "");
}

TEST_CASE("what no capture allows invalidates it") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUstream stream = nullptr;
              CUgraph graph = nullptr;
              CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
              EXPECT_EQUAL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL),
                           CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
              EXPECT_EQUAL(cuStreamEndCapture(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
              EXPECT_EQUAL(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
              EXPECT_EQUAL(cuStreamIsCapturing(stream, &status), CUDA_SUCCESS);
              EXPECT_EQUAL(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
              EXPECT_EQUAL(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
              EXPECT(graph == nullptr);
              EXPECT_EQUAL(cuStreamSynchronize(stream), CUDA_SUCCESS);
          }) == "");
}

TEST_CASE("a stream that waits for captured work joins the capture, and its events can't be asked") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUstream origin = nullptr, branch = nullptr;
              CUevent fork = nullptr, join = nullptr;
              CUdeviceptr a = 0;
              CUgraph graph = nullptr;
              CUgraphExec exec = nullptr;
              CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
              int value = 0;
              EXPECT_EQUAL(cuStreamCreate(&origin, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamCreate(&branch, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventCreate(&fork, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventCreate(&join, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAlloc(&a, 512), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemsetD32(a, 0, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventRecord(fork, origin), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventQuery(fork), CUDA_ERROR_CAPTURED_EVENT);
              EXPECT_EQUAL(cuEventSynchronize(fork), CUDA_ERROR_CAPTURED_EVENT);
              EXPECT_EQUAL(cuStreamWaitEvent(branch, fork, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamIsCapturing(branch, &status), CUDA_SUCCESS);
              EXPECT_EQUAL(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
              EXPECT_EQUAL(cuMemsetD32Async(a, 8, 1, branch), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventRecord(join, branch), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamWaitEvent(origin, join, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamEndCapture(branch, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
              EXPECT_EQUAL(cuStreamEndCapture(origin, &graph), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamIsCapturing(branch, &status), CUDA_SUCCESS);
              EXPECT_EQUAL(status, CU_STREAM_CAPTURE_STATUS_NONE);
              EXPECT_EQUAL(cuMemcpyDtoH(&value, a, 4), CUDA_SUCCESS);
              EXPECT_EQUAL(value, 0);
              EXPECT_EQUAL(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphLaunch(exec, origin), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamSynchronize(origin), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyDtoH(&value, a, 4), CUDA_SUCCESS);
              EXPECT_EQUAL(value, 8);
          }) == "");
}

TEST_CASE("a capture forbids what the documentation says it does") {
    CHECK(in_child(one_t4, [](const Report& report) {
              const CUcontext context = use_device(report);
              CUstream stream = nullptr, blocking = nullptr;
              CUdeviceptr a = 0, b = 0;
              CUgraph graph = nullptr;
              EXPECT_EQUAL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamCreate(&blocking, CU_STREAM_DEFAULT), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAlloc(&a, 512), CUDA_SUCCESS);
              // Global: this thread and every other; thread-local: this one; relaxed: nobody.
              for (const CUstreamCaptureMode mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                                     CU_STREAM_CAPTURE_MODE_RELAXED}) {
                  for (const bool here : {true, false}) {
                      EXPECT_EQUAL(cuStreamBeginCapture(stream, mode), CUDA_SUCCESS);
                      CUresult result = CUDA_SUCCESS;
                      const auto allocate = [&] {
                          cuCtxSetCurrent(context);
                          result = cuMemAlloc(&b, 512);
                      };
                      here ? allocate() : std::thread(allocate).join();
                      const bool refused = mode == CU_STREAM_CAPTURE_MODE_GLOBAL ||
                                           (mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && here);
                      EXPECT_EQUAL(result, refused ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS);
                      EXPECT_EQUAL(cuStreamEndCapture(stream, &graph),
                                   refused ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
                  }
              }
              EXPECT_EQUAL(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemsetD8Async(a, 1, 1, nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
              EXPECT_EQUAL(cuStreamEndCapture(blocking, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
              EXPECT_EQUAL(cuMemAlloc(&b, 512), CUDA_SUCCESS);
          }) == "");
}
