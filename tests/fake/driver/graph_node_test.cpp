// SPDX-License-Identifier: Apache-2.0
// Nodes that are added one by one, and objects that graphs keep alive.

#include <atomic>
#include <cstring>
#include <thread>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"
#include "tests/fake/driver/sample_ptx.h"

using namespace fake_test;

namespace {

std::atomic<int> ended{0};

void CUDA_CB count_end(void*) { ended++; }
void CUDA_CB add_one(void* number) { ++*static_cast<int*>(number); }

/// The function of a user object runs in a thread of its own.
void wait_for_ended(int count) {
    while (ended < count)
        std::this_thread::yield();
}

/// A fill of one word, a copy of it to the host, a kernel and a host function, each after the one before.
struct Nodes {
    CUgraph graph = nullptr;
    CUdeviceptr word = 0;
    int *value = nullptr, calls = 0;
    CUfunction kernel = nullptr;
    CUDA_MEMSET_NODE_PARAMS fill{};
    CUDA_MEMCPY3D copy{};
    CUDA_KERNEL_NODE_PARAMS launch{};
    CUDA_HOST_NODE_PARAMS host{add_one, &calls};

    explicit Nodes(const Report& report) {
        CUmodule module = nullptr;
        EXPECT_EQUAL(cuModuleLoadData(&module, sample_ptx), CUDA_SUCCESS);
        EXPECT_EQUAL(cuModuleGetFunction(&kernel, module, "bounded"), CUDA_SUCCESS);
        EXPECT_EQUAL(cuMemAlloc(&word, 512), CUDA_SUCCESS);
        EXPECT_EQUAL(cuMemAllocHost(reinterpret_cast<void**>(&value), 4), CUDA_SUCCESS);
        *value = 0;
        EXPECT_EQUAL(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
        fill.dst = word;
        fill.value = 7;
        fill.elementSize = 4;
        fill.width = fill.height = 1;
        copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
        copy.srcDevice = word;
        copy.dstMemoryType = CU_MEMORYTYPE_HOST;
        copy.dstHost = value;
        copy.WidthInBytes = 4;
        copy.Height = copy.Depth = 1;
        launch.func = kernel;
        launch.gridDimX = launch.gridDimY = launch.gridDimZ = 1;
        launch.blockDimX = launch.blockDimY = launch.blockDimZ = 1;
    }
    void run(const Report& report) const {
        CUgraphExec exec = nullptr;
        EXPECT_EQUAL(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
        for (int i = 1; i < 3; i++) {
            *value = 0;
            EXPECT_EQUAL(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
            EXPECT_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
            EXPECT_EQUAL(*value, 7);
            EXPECT_EQUAL(calls, i);
        }
    }
};

}  // namespace

TEST_CASE("nodes that are added one by one are done in their order, as often as the graph is launched") {
    CHECK(in_child(one_t4, [](const Report& report) {
              const CUcontext context = use_device(report);
              Nodes nodes(report);
              CUgraphNode made[4] = {};
              CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
              EXPECT_EQUAL(cuGraphAddMemsetNode(&made[0], nodes.graph, nullptr, 0, &nodes.fill, context), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddMemcpyNode(&made[1], nodes.graph, &made[0], 1, &nodes.copy, context),
                           CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddKernelNode(&made[2], nodes.graph, &made[1], 1, &nodes.launch), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddHostNode(&made[3], nodes.graph, &made[2], 1, &nodes.host), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphNodeGetType(made[1], &type), CUDA_SUCCESS);
              EXPECT_EQUAL(type, CU_GRAPH_NODE_TYPE_MEMCPY);
              nodes.run(report);
          }) == "");
}

TEST_CASE("a node of any kind is added by its type") {
    CHECK(in_child(one_t4, [](const Report& report) {
              const CUcontext context = use_device(report);
              Nodes nodes(report);
              CUgraphNode made[6] = {};
              CUgraphNodeParams params{};
              const auto add = [&](int i) {
                  return cuGraphAddNode(&made[i], nodes.graph, i > 0 ? &made[i - 1] : nullptr, nullptr, i > 0 ? 1 : 0,
                                        &params);
              };
              params.type = CU_GRAPH_NODE_TYPE_MEMSET;
              params.memset = {nodes.word, 0, 7, 4, 1, 1, context};
              params.reserved2 = 1;
              EXPECT_EQUAL(add(0), CUDA_ERROR_INVALID_VALUE);
              params.reserved2 = 0;
              EXPECT_EQUAL(add(0), CUDA_SUCCESS);
              params = {};
              params.type = CU_GRAPH_NODE_TYPE_MEMCPY;
              params.memcpy.copyCtx = context;
              params.memcpy.copyParams = nodes.copy;
              EXPECT_EQUAL(add(1), CUDA_SUCCESS);
              params = {};
              params.type = CU_GRAPH_NODE_TYPE_KERNEL;
              std::memcpy(&params.kernel, &nodes.launch, sizeof params.kernel);
              EXPECT_EQUAL(add(2), CUDA_SUCCESS);
              params = {};
              params.type = CU_GRAPH_NODE_TYPE_HOST;
              params.host.fn = nodes.host.fn;
              params.host.userData = nodes.host.userData;
              EXPECT_EQUAL(add(3), CUDA_SUCCESS);
              params = {};
              params.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
              params.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
              params.alloc.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
              params.alloc.bytesize = 512;
              EXPECT_EQUAL(add(4), CUDA_SUCCESS);
              const CUdeviceptr memory = params.alloc.dptr;
              EXPECT(memory != 0);
              params = {};
              params.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
              params.free.dptr = memory;
              EXPECT_EQUAL(add(5), CUDA_SUCCESS);
              params = {};
              params.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
              EXPECT_EQUAL(add(0), CUDA_ERROR_NOT_SUPPORTED);
              nodes.run(report);
          }) == "");
}

TEST_CASE("a node that can't be is refused, and the graph is as before") {
    CHECK(in_child(one_t4, [](const Report& report) {
              const CUcontext context = use_device(report);
              Nodes nodes(report);
              CUgraph other = nullptr;
              CUgraphNode node = nullptr, foreign = nullptr;
              EXPECT_EQUAL(cuGraphCreate(&other, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddEmptyNode(&foreign, other, nullptr, 0), CUDA_SUCCESS);
              const auto fill = [&](const CUDA_MEMSET_NODE_PARAMS& params, CUcontext where = nullptr) {
                  return cuGraphAddMemsetNode(&node, nodes.graph, nullptr, 0, &params, where);
              };
              CUDA_MEMSET_NODE_PARAMS bad = nodes.fill;
              EXPECT_EQUAL(fill(nodes.fill), CUDA_ERROR_INVALID_VALUE);  // no context
              bad.elementSize = 3;
              EXPECT_EQUAL(fill(bad, context), CUDA_ERROR_INVALID_VALUE);
              bad = nodes.fill;
              bad.width = 129;
              EXPECT_EQUAL(fill(bad, context), CUDA_ERROR_INVALID_VALUE);
              CUDA_MEMCPY3D copy = nodes.copy;
              copy.srcDevice += 512;
              EXPECT_EQUAL(cuGraphAddMemcpyNode(&node, nodes.graph, nullptr, 0, &copy, context),
                           CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuGraphAddMemcpyNode(&node, nodes.graph, &foreign, 1, &nodes.copy, context),
                           CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuGraphAddMemcpyNode(nullptr, nodes.graph, nullptr, 0, &nodes.copy, context),
                           CUDA_ERROR_INVALID_VALUE);
              CUDA_KERNEL_NODE_PARAMS launch = nodes.launch;
              launch.blockDimX = 129;
              EXPECT_EQUAL(cuGraphAddKernelNode(&node, nodes.graph, nullptr, 0, &launch),
                           CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
              nodes.host.fn = nullptr;
              EXPECT_EQUAL(cuGraphAddHostNode(&node, nodes.graph, nullptr, 0, &nodes.host), CUDA_ERROR_INVALID_VALUE);
              size_t count = 99;
              EXPECT_EQUAL(cuGraphGetNodes(nodes.graph, nullptr, &count), CUDA_SUCCESS);
              EXPECT_EQUAL(count, size_t{0});
              EXPECT(node == nullptr);
          }) == "");
}

TEST_CASE("a node that is destroyed is done no more, and its place is another's") {
    CHECK(in_child(one_t4, [](const Report& report) {
              const CUcontext context = use_device(report);
              Nodes nodes(report);
              CUgraphNode made[3] = {}, none = nullptr;
              CUgraphExec exec = nullptr;
              CUDA_MEMSET_NODE_PARAMS other = nodes.fill;
              other.value = 9;
              EXPECT_EQUAL(cuGraphAddMemsetNode(&made[0], nodes.graph, nullptr, 0, &nodes.fill, context), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddMemsetNode(&made[1], nodes.graph, made, 1, &other, context), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphInstantiate(&exec, nodes.graph, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphDestroyNode(made[1]), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphDestroyNode(made[1]), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuGraphDestroyNode(none), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuGraphAddMemcpyNode(&made[2], nodes.graph, made, 1, &nodes.copy, context), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddHostNode(&made[1], nodes.graph, &made[2], 1, &nodes.host), CUDA_SUCCESS);
              nodes.run(report);
              // An instance keeps what it was made of.
              unsigned value = 0;
              EXPECT_EQUAL(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyDtoH(&value, nodes.word, 4), CUDA_SUCCESS);
              EXPECT_EQUAL(value, 9u);
              CUDA_MEM_ALLOC_NODE_PARAMS memory{};
              memory.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
              memory.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
              memory.bytesize = 512;
              EXPECT_EQUAL(cuGraphAddMemAllocNode(&none, nodes.graph, nullptr, 0, &memory), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphDestroyNode(made[0]), CUDA_ERROR_NOT_SUPPORTED);
          }) == "");
}

TEST_CASE("a child graph is a copy that is done in its node's place, and belongs to it") {
    CHECK(in_child(one_t4, [](const Report& report) {
              const CUcontext context = use_device(report);
              Nodes nodes(report);
              CUgraph parent = nullptr;
              CUgraph own = nullptr;
              CUgraphNode node = nullptr;
              CUgraphNode child = nullptr;
              size_t count = 0;
              EXPECT_EQUAL(cuGraphAddMemsetNode(&node, nodes.graph, nullptr, 0, &nodes.fill, context), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddHostNode(&node, nodes.graph, &node, 1, &nodes.host), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphCreate(&parent, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddChildGraphNode(&child, parent, nullptr, 0, parent), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuGraphAddChildGraphNode(&child, parent, nullptr, 0, nodes.graph), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddMemcpyNode(&node, parent, &child, 1, &nodes.copy, context), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphDestroy(nodes.graph), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphChildGraphNodeGetGraph(child, &own), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphChildGraphNodeGetGraph(node, &own), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuGraphGetNodes(own, nullptr, &count), CUDA_SUCCESS);
              EXPECT_EQUAL(count, 2u);
              EXPECT_EQUAL(cuGraphDestroy(own), CUDA_ERROR_INVALID_VALUE);
              nodes.graph = parent;
              nodes.run(report);
              EXPECT_EQUAL(cuGraphDestroy(parent), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphGetNodes(own, nullptr, &count), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}

TEST_CASE("an instance's nodes are changed, and the graph stays as it was") {
    CHECK(in_child(one_t4, [](const Report& report) {
              const CUcontext context = use_device(report);
              Nodes nodes(report);
              CUgraphNode made[4] = {};
              CUgraphExec exec = nullptr;
              EXPECT_EQUAL(cuGraphAddMemsetNode(&made[0], nodes.graph, nullptr, 0, &nodes.fill, context), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddMemcpyNode(&made[1], nodes.graph, &made[0], 1, &nodes.copy, context),
                           CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddKernelNode(&made[2], nodes.graph, &made[1], 1, &nodes.launch), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddHostNode(&made[3], nodes.graph, &made[2], 1, &nodes.host), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphInstantiate(&exec, nodes.graph, 0), CUDA_SUCCESS);
              int other = 0;
              CUDA_MEMSET_NODE_PARAMS fill = nodes.fill;
              fill.value = 9;
              CUDA_HOST_NODE_PARAMS host{add_one, &other};
              CUDA_KERNEL_NODE_PARAMS launch = nodes.launch;
              EXPECT_EQUAL(cuGraphExecMemsetNodeSetParams(exec, made[0], &fill, context), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphExecMemsetNodeSetParams(exec, made[1], &fill, context), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuGraphExecHostNodeSetParams(exec, made[3], &host), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphExecKernelNodeSetParams(exec, made[2], &launch), CUDA_SUCCESS);
              launch.blockDimX = 129;
              EXPECT_EQUAL(cuGraphExecKernelNodeSetParams(exec, made[2], &launch), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
              CUgraphNodeParams any{};
              any.type = CU_GRAPH_NODE_TYPE_MEMCPY;
              any.memcpy.copyCtx = context;
              any.memcpy.copyParams = nodes.copy;
              EXPECT_EQUAL(cuGraphExecNodeSetParams(exec, made[1], &any), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
              EXPECT_EQUAL(*nodes.value, 9);
              EXPECT_EQUAL(other, 1);
              EXPECT_EQUAL(nodes.calls, 0);
              nodes.run(report);
          }) == "");
}

TEST_CASE("an instance's child graph is changed for one with the same nodes") {
    CHECK(in_child(one_t4, [](const Report& report) {
              const CUcontext context = use_device(report);
              Nodes nodes(report);
              CUgraph small = nullptr;
              CUgraph same = nullptr;
              CUgraphNode node = nullptr;
              CUgraphNode child = nullptr;
              CUgraphExec exec = nullptr;
              CUDA_MEMSET_NODE_PARAMS fill = nodes.fill;
              fill.value = 3;
              EXPECT_EQUAL(cuGraphCreate(&small, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphCreate(&same, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddMemsetNode(&node, same, nullptr, 0, &fill, context), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddChildGraphNode(&child, nodes.graph, nullptr, 0, same), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddMemcpyNode(&node, nodes.graph, &child, 1, &nodes.copy, context), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphInstantiate(&exec, nodes.graph, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphDestroy(same), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphCreate(&same, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddMemsetNode(&node, same, nullptr, 0, &nodes.fill, context), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphExecChildGraphNodeSetParams(exec, child, small), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuGraphExecChildGraphNodeSetParams(exec, node, same), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuGraphExecChildGraphNodeSetParams(exec, child, same), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
              EXPECT_EQUAL(*nodes.value, 7);
          }) == "");
}

TEST_CASE("a capture goes into a graph that is there, behind what it has") {
    CHECK(in_child(one_t4, [](const Report& report) {
              const CUcontext context = use_device(report);
              Nodes nodes(report);
              CUgraph got = nullptr;
              CUgraphNode first = nullptr;
              CUstream stream = nullptr;
              size_t count = 0;
              EXPECT_EQUAL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddMemsetNode(&first, nodes.graph, nullptr, 0, &nodes.fill, context), CUDA_SUCCESS);
              const auto begin = [&](CUgraph graph, const CUgraphEdgeData* edges = nullptr) {
                  return cuStreamBeginCaptureToGraph(stream, graph, &first, edges, 1, CU_STREAM_CAPTURE_MODE_RELAXED);
              };
              EXPECT_EQUAL(begin(nullptr), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(begin(nodes.graph), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyDtoHAsync(nodes.value, nodes.word, 4, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuLaunchHostFunc(stream, nodes.host.fn, nodes.host.userData), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamEndCapture(stream, &got), CUDA_SUCCESS);
              EXPECT_EQUAL(got, nodes.graph);
              EXPECT_EQUAL(cuGraphGetNodes(got, nullptr, &count), CUDA_SUCCESS);
              EXPECT_EQUAL(count, 3u);
              nodes.run(report);
              // One that fails leaves the program its graph.
              EXPECT_EQUAL(begin(nodes.graph), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
              EXPECT_EQUAL(cuStreamEndCapture(stream, &got), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
              EXPECT_EQUAL(cuGraphDestroy(nodes.graph), CUDA_SUCCESS);
          }) == "");
}

TEST_CASE("an edge may let a node start early only behind a kernel") {
    CHECK(in_child(one_t4, [](const Report& report) {
              const CUcontext context = use_device(report);
              Nodes nodes(report);
              CUgraphNode made[3] = {};
              CUgraphNodeParams params{};
              CUgraphEdgeData edge{};
              params.type = CU_GRAPH_NODE_TYPE_KERNEL;
              std::memcpy(&params.kernel, &nodes.launch, sizeof params.kernel);
              EXPECT_EQUAL(cuGraphAddNode(&made[0], nodes.graph, nullptr, nullptr, 0, &params), CUDA_SUCCESS);
              const auto behind = [&](CUgraphNode* node) {
                  return cuGraphAddNode(&made[1], nodes.graph, node, &edge, 1, &params);
              };
              edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
              edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
              EXPECT_EQUAL(behind(&made[0]), CUDA_SUCCESS);
              edge.to_port = 1;
              EXPECT_EQUAL(behind(&made[0]), CUDA_ERROR_INVALID_VALUE);
              edge.to_port = 0;
              EXPECT_EQUAL(cuGraphAddMemsetNode(&made[2], nodes.graph, nullptr, 0, &nodes.fill, context), CUDA_SUCCESS);
              EXPECT_EQUAL(behind(&made[2]), CUDA_ERROR_INVALID_VALUE);
              edge = {};
              edge.reserved[4] = 1;
              EXPECT_EQUAL(behind(&made[0]), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}

TEST_CASE("what can't be copied or moved is refused inside a child graph too") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUgraph outer = nullptr, inner = nullptr, child = nullptr, clone = nullptr;
              CUgraphNode node = nullptr, other = nullptr;
              for (CUgraph* const graph : {&outer, &inner})
                  EXPECT_EQUAL(cuGraphCreate(graph, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddChildGraphNode(&node, outer, nullptr, 0, inner), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphChildGraphNodeGetGraph(node, &child), CUDA_SUCCESS);
              CUDA_MEM_ALLOC_NODE_PARAMS memory{};
              memory.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
              memory.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
              memory.bytesize = 4096;
              EXPECT_EQUAL(cuGraphAddMemAllocNode(&other, child, nullptr, 0, &memory), CUDA_ERROR_NOT_SUPPORTED);
              EXPECT_EQUAL(cuGraphClone(&clone, outer), CUDA_SUCCESS);
              CUgraphNodeParams moved{};
              moved.type = CU_GRAPH_NODE_TYPE_GRAPH;
              moved.graph.graph = outer;
              moved.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
              EXPECT_EQUAL(cuGraphAddNode(&other, child, nullptr, nullptr, 0, &moved), CUDA_ERROR_INVALID_VALUE);
              CUgraphNodeParams conditional{};
              conditional.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
              conditional.conditional.type = CU_GRAPH_COND_TYPE_IF;
              conditional.conditional.size = 1;
              EXPECT_EQUAL(cuCtxGetCurrent(&conditional.conditional.ctx), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphConditionalHandleCreate(&conditional.conditional.handle, child,
                                                          conditional.conditional.ctx, 0, 0),
                           CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddNode(&other, child, nullptr, nullptr, 0, &conditional), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphClone(&clone, outer), CUDA_ERROR_NOT_SUPPORTED);
              EXPECT_EQUAL(cuGraphDestroy(outer), CUDA_SUCCESS);
          }) == "");
}

TEST_CASE("an object ends after its last reference, whoever holds that") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUuserObject object = nullptr;
              CUgraph graph = nullptr, clone = nullptr;
              CUgraphExec exec = nullptr;
              constexpr unsigned flag = CU_USER_OBJECT_NO_DESTRUCTOR_SYNC;
              EXPECT_EQUAL(cuUserObjectCreate(&object, nullptr, count_end, 1, 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuUserObjectCreate(&object, nullptr, count_end, 0, flag), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuUserObjectCreate(&object, nullptr, nullptr, 1, flag), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuUserObjectCreate(&object, nullptr, count_end, 2, flag), CUDA_SUCCESS);
              EXPECT_EQUAL(cuUserObjectRelease(object, 3), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuUserObjectRetain(object, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(cuUserObjectRelease(object, 3), CUDA_SUCCESS);
              wait_for_ended(1);
              EXPECT_EQUAL(cuUserObjectRetain(object, 1), CUDA_ERROR_INVALID_VALUE);
              // A graph, its copy, its instance: each holds as many.
              EXPECT_EQUAL(cuUserObjectCreate(&object, nullptr, count_end, 1, flag), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphRetainUserObject(graph, object, 1, 2), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphClone(&clone, graph), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphReleaseUserObject(graph, object, 2), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuGraphReleaseUserObject(graph, object, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphDestroy(graph), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphDestroy(clone), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuUserObjectRetain(object, 1), CUDA_SUCCESS);  // still there
              EXPECT_EQUAL(cuUserObjectRelease(object, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(int{ended}, 1);
              EXPECT_EQUAL(cuGraphExecDestroy(exec), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
              wait_for_ended(2);
          }) == "");
}
