// SPDX-License-Identifier: Apache-2.0
// Captures over several streams: which node depends on which, and what doesn't go together.

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

namespace {

/// Two streams, an event of each, and memory to fill.
struct Streams {
    CUstream origin = nullptr, branch = nullptr;
    CUevent fork = nullptr, join = nullptr;
    CUdeviceptr word = 0;

    explicit Streams(const Report& report) {
        EXPECT_EQUAL(cuStreamCreate(&origin, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        EXPECT_EQUAL(cuStreamCreate(&branch, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        EXPECT_EQUAL(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
        EXPECT_EQUAL(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
        EXPECT_EQUAL(cuMemAlloc(&word, 512), CUDA_SUCCESS);
    }
    CUresult begin() const { return cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_RELAXED); }
    CUresult fill(CUstream stream) const { return cuMemsetD32Async(word, 1, 1, stream); }
    void fork_branch(const Report& report) const {
        EXPECT_EQUAL(cuEventRecord(fork, origin), CUDA_SUCCESS);
        EXPECT_EQUAL(cuStreamWaitEvent(branch, fork, 0), CUDA_SUCCESS);
    }
    void join_branch(const Report& report) const {
        EXPECT_EQUAL(cuEventRecord(join, branch), CUDA_SUCCESS);
        EXPECT_EQUAL(cuStreamWaitEvent(origin, join, 0), CUDA_SUCCESS);
    }
};

/// Dependencies that the next node of a stream would have.
size_t depends_on(CUstream stream, const CUgraphNode*& nodes, CUgraph* graph = nullptr) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    size_t count = 0;
    const CUresult result = cuStreamGetCaptureInfo_v3(stream, &status, nullptr, graph, &nodes, nullptr, &count);
    return result == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? count : 99;
}

size_t dependencies(CUgraphNode node) {
    size_t count = 99;
    cuGraphNodeGetDependencies(node, nullptr, nullptr, &count);
    return count;
}

}  // namespace

TEST_CASE("a captured node depends on what its stream captured before, and on events that the stream waits for") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const Streams streams(report);
              CUgraph graph = nullptr;
              CUgraphNode nodes[5] = {};
              size_t count = 5;
              const CUgraphNode* last = nullptr;
              EXPECT_EQUAL(streams.begin(), CUDA_SUCCESS);
              EXPECT_EQUAL(depends_on(streams.origin, last), size_t{0});
              EXPECT_EQUAL(streams.fill(streams.origin), CUDA_SUCCESS);  // 0
              streams.fork_branch(report);
              EXPECT_EQUAL(streams.fill(streams.branch), CUDA_SUCCESS);  // 1, after 0
              EXPECT_EQUAL(streams.fill(streams.origin), CUDA_SUCCESS);  // 2, after 0
              streams.join_branch(report);
              EXPECT_EQUAL(depends_on(streams.origin, last), size_t{2});
              EXPECT_EQUAL(streams.fill(streams.origin), CUDA_SUCCESS);  // 3, after 1 and 2
              EXPECT_EQUAL(cuStreamEndCapture(streams.origin, &graph), CUDA_SUCCESS);
              // Events are no nodes.
              EXPECT_EQUAL(cuGraphGetNodes(graph, nodes, &count), CUDA_SUCCESS);
              EXPECT_EQUAL(count, size_t{4});
              EXPECT_EQUAL(dependencies(nodes[0]), size_t{0});
              EXPECT_EQUAL(dependencies(nodes[1]), size_t{1});
              EXPECT_EQUAL(dependencies(nodes[2]), size_t{1});
              EXPECT_EQUAL(dependencies(nodes[3]), size_t{2});
              CUgraphNode before = nullptr;
              count = 1;
              EXPECT_EQUAL(cuGraphNodeGetDependencies(nodes[2], &before, nullptr, &count), CUDA_SUCCESS);
              EXPECT(before == nodes[0]);
          }) == "");
}

TEST_CASE("a capture whose branch wasn't joined ends with an error and no graph") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const Streams streams(report);
              CUgraph graph = nullptr;
              for (const bool ended : {false, true}) {
                  CUstream branch = nullptr;
                  EXPECT_EQUAL(cuStreamCreate(&branch, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
                  EXPECT_EQUAL(streams.begin(), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuEventRecord(streams.fork, streams.origin), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuStreamWaitEvent(branch, streams.fork, 0), CUDA_SUCCESS);
                  EXPECT_EQUAL(streams.fill(branch), CUDA_SUCCESS);
                  if (ended)
                      EXPECT_EQUAL(cuStreamDestroy(branch), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuStreamEndCapture(streams.origin, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
                  EXPECT(graph == nullptr);
              }
              // A branch that captured nothing, or nothing since it was joined, is no matter.
              EXPECT_EQUAL(streams.begin(), CUDA_SUCCESS);
              EXPECT_EQUAL(streams.fill(streams.origin), CUDA_SUCCESS);
              streams.fork_branch(report);
              EXPECT_EQUAL(cuStreamEndCapture(streams.origin, &graph), CUDA_SUCCESS);
          }) == "");
}

TEST_CASE("an event that was last recorded in a capture stays out of reach until it is recorded again") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const Streams streams(report);
              CUgraph graph = nullptr;
              EXPECT_EQUAL(streams.begin(), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventRecord(streams.fork, streams.origin), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamEndCapture(streams.origin, &graph), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventQuery(streams.fork), CUDA_ERROR_CAPTURED_EVENT);
              EXPECT_EQUAL(cuEventSynchronize(streams.fork), CUDA_ERROR_CAPTURED_EVENT);
              EXPECT_EQUAL(cuStreamWaitEvent(streams.origin, streams.fork, 0), CUDA_ERROR_CAPTURED_EVENT);
              EXPECT_EQUAL(cuEventRecord(streams.fork, streams.origin), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventSynchronize(streams.fork), CUDA_SUCCESS);
          }) == "");
}

TEST_CASE("work outside a capture, and another capture, can't be waited for in one") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const Streams streams(report);
              CUgraph graph = nullptr;
              CUevent never = nullptr;
              EXPECT_EQUAL(cuEventCreate(&never, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventRecord(streams.join, streams.branch), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventSynchronize(streams.join), CUDA_SUCCESS);
              EXPECT_EQUAL(streams.begin(), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamWaitEvent(streams.origin, never, 0), CUDA_SUCCESS);
              // It is reached, which doesn't matter: the graph could be launched again later.
              EXPECT_EQUAL(cuStreamWaitEvent(streams.origin, streams.join, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
              EXPECT_EQUAL(cuStreamEndCapture(streams.origin, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
              EXPECT_EQUAL(streams.begin(), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamBeginCapture(streams.branch, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventRecord(streams.fork, streams.origin), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamWaitEvent(streams.branch, streams.fork, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
              for (const CUstream stream : {streams.origin, streams.branch})
                  EXPECT_EQUAL(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
          }) == "");
}

TEST_CASE("a stream doesn't join a capture that is invalid") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const Streams streams(report);
              CUgraph graph = nullptr;
              CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
              EXPECT_EQUAL(streams.begin(), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventRecord(streams.fork, streams.origin), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamSynchronize(streams.origin), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
              EXPECT_EQUAL(cuStreamWaitEvent(streams.branch, streams.fork, 0), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
              EXPECT_EQUAL(cuStreamIsCapturing(streams.branch, &status), CUDA_SUCCESS);
              EXPECT_EQUAL(status, CU_STREAM_CAPTURE_STATUS_NONE);
              EXPECT_EQUAL(cuStreamEndCapture(streams.origin, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
          }) == "");
}

TEST_CASE("a program changes what the next captured node depends on") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const Streams streams(report);
              CUgraph graph = nullptr;
              CUgraphNode empty = nullptr;
              const CUgraphNode* last = nullptr;
              EXPECT_EQUAL(cuStreamUpdateCaptureDependencies_v2(streams.origin, nullptr, nullptr, 0, 0),
                           CUDA_ERROR_ILLEGAL_STATE);
              EXPECT_EQUAL(streams.begin(), CUDA_SUCCESS);
              EXPECT_EQUAL(streams.fill(streams.origin), CUDA_SUCCESS);
              EXPECT_EQUAL(depends_on(streams.origin, last, &graph), size_t{1});
              EXPECT_EQUAL(cuGraphAddEmptyNode(&empty, graph, last, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamUpdateCaptureDependencies_v2(streams.origin, &empty, nullptr, 1, 7),
                           CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuStreamUpdateCaptureDependencies_v2(streams.origin, &empty, nullptr, 1,
                                                                CU_STREAM_ADD_CAPTURE_DEPENDENCIES),
                           CUDA_SUCCESS);
              EXPECT_EQUAL(depends_on(streams.origin, last), size_t{2});
              EXPECT_EQUAL(cuStreamUpdateCaptureDependencies_v2(streams.origin, &empty, nullptr, 1,
                                                                CU_STREAM_SET_CAPTURE_DEPENDENCIES),
                           CUDA_SUCCESS);
              EXPECT_EQUAL(depends_on(streams.origin, last), size_t{1});
              EXPECT(last[0] == empty);
              EXPECT_EQUAL(cuStreamUpdateCaptureDependencies_v2(streams.origin, nullptr, nullptr, 0,
                                                                CU_STREAM_SET_CAPTURE_DEPENDENCIES),
                           CUDA_SUCCESS);
              EXPECT_EQUAL(streams.fill(streams.origin), CUDA_SUCCESS);  // a second root
              // Nobody misses a node that was taken from the set.
              EXPECT_EQUAL(cuStreamEndCapture(streams.origin, &graph), CUDA_SUCCESS);
              size_t roots = 0;
              EXPECT_EQUAL(cuGraphGetRootNodes(graph, nullptr, &roots), CUDA_SUCCESS);
              EXPECT_EQUAL(roots, size_t{2});
          }) == "");
}

TEST_CASE("a capture into a graph goes behind the nodes that are named") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              const Streams streams(report);
              CUgraph graph = nullptr, ended = nullptr;
              CUgraphNode root[2] = {}, before = nullptr, all[3] = {};
              size_t count = 3;
              EXPECT_EQUAL(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
              for (CUgraphNode& node : root)
                  EXPECT_EQUAL(cuGraphAddEmptyNode(&node, graph, nullptr, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamBeginCaptureToGraph(streams.origin, graph, &root[0], nullptr, 1,
                                                       CU_STREAM_CAPTURE_MODE_RELAXED),
                           CUDA_SUCCESS);
              EXPECT_EQUAL(streams.fill(streams.origin), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamEndCapture(streams.origin, &ended), CUDA_SUCCESS);
              EXPECT(ended == graph);
              EXPECT_EQUAL(cuGraphGetNodes(graph, all, &count), CUDA_SUCCESS);
              count = 1;
              EXPECT_EQUAL(cuGraphNodeGetDependencies(all[2], &before, nullptr, &count), CUDA_SUCCESS);
              EXPECT_EQUAL(count, size_t{1});
              EXPECT(before == root[0]);
          }) == "");
}
