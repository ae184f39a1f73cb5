// SPDX-License-Identifier: Apache-2.0
// Nodes that record events or wait for them.

#include <atomic>
#include <thread>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

namespace {

std::atomic<bool> may_go_on{false};

void CUDA_CB wait_for_leave(void*) {
    while (!may_go_on)
        std::this_thread::yield();
}

CUgraphExec instantiated(const Report& report, CUgraph graph) {
    CUgraphExec exec = nullptr;
    EXPECT_EQUAL(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
    return exec;
}

}  // namespace

TEST_CASE("a node records its event in each launch, when what is before it is done") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUgraph graph = nullptr;
              CUgraphNode host = nullptr, record = nullptr;
              CUevent event = nullptr;
              CUstream stream = nullptr;
              const CUDA_HOST_NODE_PARAMS wait{wait_for_leave, nullptr};
              EXPECT_EQUAL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventCreate(&event, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddHostNode(&host, graph, nullptr, 0, &wait), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddEventRecordNode(&record, graph, &host, 1, event), CUDA_SUCCESS);
              const CUgraphExec exec = instantiated(report, graph);
              EXPECT_EQUAL(cuEventQuery(event), CUDA_SUCCESS);  // nothing has been recorded
              EXPECT_EQUAL(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventQuery(event), CUDA_ERROR_NOT_READY);
              may_go_on = true;
              EXPECT_EQUAL(cuEventSynchronize(event), CUDA_SUCCESS);
          }) == "");
}

TEST_CASE("a node waits for what its event stands for at the launch, in another stream too") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUgraph graph = nullptr;
              CUgraphNode wait = nullptr;
              CUevent event = nullptr;
              CUstream stream = nullptr, other = nullptr;
              EXPECT_EQUAL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddEventWaitNode(&wait, graph, nullptr, 0, event), CUDA_SUCCESS);
              const CUgraphExec exec = instantiated(report, graph);
              EXPECT_EQUAL(cuLaunchHostFunc(other, wait_for_leave, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventRecord(event, other), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
              may_go_on = true;
              EXPECT_EQUAL(cuStreamSynchronize(stream), CUDA_SUCCESS);
          }) == "");
}

TEST_CASE("the event of a node is told and changed, in its graph and in an instance") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUgraph graph = nullptr;
              CUgraphNode record = nullptr, wait = nullptr;
              CUevent event[3] = {}, told = nullptr;
              CUgraphNodeParams params{};
              float milliseconds = 0;
              for (CUevent& one : event)
                  EXPECT_EQUAL(cuEventCreate(&one, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
              params.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
              params.eventRecord.event = event[0];
              EXPECT_EQUAL(cuGraphAddNode(&record, graph, nullptr, nullptr, 0, &params), CUDA_SUCCESS);
              params.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT;
              params.eventWait.event = event[1];
              EXPECT_EQUAL(cuGraphAddNode(&wait, graph, &record, nullptr, 1, &params), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphEventRecordNodeGetEvent(wait, &told), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuGraphEventWaitNodeGetEvent(wait, &told), CUDA_SUCCESS);
              EXPECT(told == event[1]);
              EXPECT_EQUAL(cuGraphEventRecordNodeSetEvent(record, nullptr), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuGraphEventRecordNodeSetEvent(record, event[1]), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphEventRecordNodeGetEvent(record, &told), CUDA_SUCCESS);
              EXPECT(told == event[1]);
              const CUgraphExec exec = instantiated(report, graph);
              EXPECT_EQUAL(cuGraphExecEventRecordNodeSetEvent(exec, record, event[2]), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphExecEventWaitNodeSetEvent(exec, record, event[2]), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventElapsedTime(&milliseconds, event[2], event[2]), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventElapsedTime(&milliseconds, event[1], event[1]), CUDA_ERROR_INVALID_HANDLE);
          }) == "");
}

TEST_CASE("an external event is a node of a capture, and only there") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUgraph graph = nullptr;
              CUgraphNode nodes[3] = {};
              CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
              CUevent event = nullptr;
              CUstream stream = nullptr;
              size_t count = 3;
              EXPECT_EQUAL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventCreate(&event, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_EXTERNAL), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuStreamWaitEvent(stream, event, CU_EVENT_WAIT_EXTERNAL), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_EXTERNAL), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamWaitEvent(stream, event, CU_EVENT_WAIT_EXTERNAL), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventQuery(event), CUDA_SUCCESS);  // it isn't captured itself
              EXPECT_EQUAL(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphGetNodes(graph, nodes, &count), CUDA_SUCCESS);
              EXPECT_EQUAL(count, size_t{2});
              EXPECT_EQUAL(cuGraphNodeGetType(nodes[0], &type), CUDA_SUCCESS);
              EXPECT_EQUAL(type, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
              EXPECT_EQUAL(cuGraphNodeGetType(nodes[1], &type), CUDA_SUCCESS);
              EXPECT_EQUAL(type, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
          }) == "");
}

TEST_CASE("a launch that would wait for a captured event submits nothing, unless a node records it before") {
    CHECK(in_child(one_t4, [](const Report& report) {
              const CUcontext context = use_device(report);
              CUgraph graph = nullptr, captured = nullptr;
              CUgraphNode fill = nullptr, wait = nullptr, record = nullptr;
              CUevent event = nullptr;
              CUstream stream = nullptr;
              CUdeviceptr word = 0;
              int value = 0;
              EXPECT_EQUAL(cuMemAlloc(&word, 512), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemsetD32(word, 1, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventCreate(&event, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventRecord(event, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamEndCapture(stream, &captured), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
              const CUDA_MEMSET_NODE_PARAMS params{word, 0, 7, 4, 1, 1};
              EXPECT_EQUAL(cuGraphAddMemsetNode(&fill, graph, nullptr, 0, &params, context), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddEventWaitNode(&wait, graph, &fill, 1, event), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphLaunch(instantiated(report, graph), stream), CUDA_ERROR_CAPTURED_EVENT);
              EXPECT_EQUAL(cuMemcpyDtoH(&value, word, 4), CUDA_SUCCESS);
              EXPECT_EQUAL(value, 1);
              EXPECT_EQUAL(cuGraphAddEventRecordNode(&record, graph, nullptr, 0, event), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddDependencies(graph, &record, &fill, nullptr, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphLaunch(instantiated(report, graph), stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamSynchronize(stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyDtoH(&value, word, 4), CUDA_SUCCESS);
              EXPECT_EQUAL(value, 7);
          }) == "");
}

TEST_CASE("a launch whose event has ended submits nothing") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUgraph graph = nullptr;
              CUgraphNode fill = nullptr, record = nullptr;
              CUevent event = nullptr;
              CUcontext context = nullptr;
              CUdeviceptr word = 0;
              int value = 0;
              EXPECT_EQUAL(cuCtxGetCurrent(&context), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAlloc(&word, 512), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemsetD32(word, 1, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventCreate(&event, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
              const CUDA_MEMSET_NODE_PARAMS params{word, 0, 7, 4, 1, 1};
              EXPECT_EQUAL(cuGraphAddMemsetNode(&fill, graph, nullptr, 0, &params, context), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddEventRecordNode(&record, graph, &fill, 1, event), CUDA_SUCCESS);
              const CUgraphExec exec = instantiated(report, graph);
              EXPECT_EQUAL(cuEventDestroy(event), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphLaunch(exec, nullptr), CUDA_ERROR_INVALID_HANDLE);
              EXPECT_EQUAL(cuMemcpyDtoH(&value, word, 4), CUDA_SUCCESS);
              EXPECT_EQUAL(value, 1);
          }) == "");
}
