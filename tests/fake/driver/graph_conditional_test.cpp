// SPDX-License-Identifier: Apache-2.0
// Nodes whose graphs run if a value says so. Nothing changes the value here: it is the one of the start.

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

namespace {

constexpr unsigned kDefault = CU_GRAPH_COND_ASSIGN_DEFAULT;

/// A graph, and memory in which each body writes its own byte.
struct Scene {
    const Report& report;
    CUcontext context;
    CUgraph graph = nullptr;
    CUdeviceptr bytes = 0;

    explicit Scene(const Report& to) : report(to), context(use_device(to)) {
        EXPECT_EQUAL(cuMemAlloc(&bytes, 16), CUDA_SUCCESS);
        EXPECT_EQUAL(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
    }
    CUgraphConditionalHandle handle(unsigned value, unsigned flags = kDefault) const {
        CUgraphConditionalHandle made = 0;
        EXPECT_EQUAL(cuGraphConditionalHandleCreate(&made, graph, context, value, flags), CUDA_SUCCESS);
        return made;
    }
    CUresult add(CUgraph into, CUgraphConditionalHandle handle, CUgraphConditionalNodeType type, unsigned size,
                 CUgraph** bodies = nullptr) const {
        CUgraphNode node = nullptr;
        CUgraphNodeParams params{};
        params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
        params.conditional = {handle, type, size, nullptr, context};
        const CUresult result = cuGraphAddNode(&node, into, nullptr, nullptr, 0, &params);
        if (bodies != nullptr)
            *bodies = params.conditional.phGraph_out;
        return result;
    }
    void fill(CUgraph body, unsigned at) const {
        CUgraphNode node = nullptr;
        CUDA_MEMSET_NODE_PARAMS fill{};
        fill.dst = bytes + at;
        fill.value = 1;
        fill.elementSize = 1;
        fill.width = fill.height = 1;
        EXPECT_EQUAL(cuGraphAddMemsetNode(&node, body, nullptr, 0, &fill, context), CUDA_SUCCESS);
    }
    /// "01": the bytes that a launch has written.
    std::string run(unsigned count) const {
        CUgraphExec exec = nullptr;
        std::string written(count, '\0');
        EXPECT_EQUAL(cuMemsetD8(bytes, 0, 16), CUDA_SUCCESS);
        EXPECT_EQUAL(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
        EXPECT_EQUAL(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
        EXPECT_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
        EXPECT_EQUAL(cuMemcpyDtoH(written.data(), bytes, count), CUDA_SUCCESS);
        for (char& byte : written)
            byte = static_cast<char>('0' + byte);
        return written;
    }
};

/// Runs a node of this type whose bodies write a byte each.
template <CUgraphConditionalNodeType type>
std::string written(const Report& report, unsigned size, unsigned value, unsigned flags = kDefault) {
    const Scene scene(report);
    CUgraph* bodies = nullptr;
    EXPECT_EQUAL(scene.add(scene.graph, scene.handle(value, flags), type, size, &bodies), CUDA_SUCCESS);
    for (unsigned i = 0; i < size; i++)
        scene.fill(bodies[i], i);
    return scene.run(size);
}

}  // namespace

TEST_CASE("the body of a conditional node runs by the value that its handle was made with") {
    CHECK(in_child(one_t4, [](const Report& report) {
              EXPECT(written<CU_GRAPH_COND_TYPE_IF>(report, 1, 1) == "1");
              EXPECT(written<CU_GRAPH_COND_TYPE_IF>(report, 1, 0) == "0");
              EXPECT(written<CU_GRAPH_COND_TYPE_IF>(report, 2, 7) == "10");
              EXPECT(written<CU_GRAPH_COND_TYPE_IF>(report, 2, 0) == "01");
              EXPECT(written<CU_GRAPH_COND_TYPE_IF>(report, 1, 1, 0) == "0");
              EXPECT(written<CU_GRAPH_COND_TYPE_WHILE>(report, 1, 1) == "1");
              EXPECT(written<CU_GRAPH_COND_TYPE_WHILE>(report, 1, 0) == "0");
              EXPECT(written<CU_GRAPH_COND_TYPE_SWITCH>(report, 3, 2) == "001");
              EXPECT(written<CU_GRAPH_COND_TYPE_SWITCH>(report, 3, 3) == "000");
          }) == "");
}

TEST_CASE("a body has conditional nodes in its turn, and may be captured") {
    CHECK(in_child(one_t4, [](const Report& report) {
              const Scene scene(report);
              CUgraph *outer = nullptr, *inner = nullptr, ended = nullptr;
              CUstream stream = nullptr;
              EXPECT_EQUAL(scene.add(scene.graph, scene.handle(1), CU_GRAPH_COND_TYPE_IF, 1, &outer), CUDA_SUCCESS);
              EXPECT_EQUAL(scene.add(outer[0], scene.handle(1), CU_GRAPH_COND_TYPE_SWITCH, 2, &inner), CUDA_SUCCESS);
              scene.fill(outer[0], 0);
              scene.fill(inner[0], 1);
              EXPECT_EQUAL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              EXPECT_EQUAL(
                  cuStreamBeginCaptureToGraph(stream, inner[1], nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_RELAXED),
                  CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemsetD8Async(scene.bytes + 2, 1, 1, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamEndCapture(stream, &ended), CUDA_SUCCESS);
              EXPECT(scene.run(3) == "101");
          }) == "");
}

TEST_CASE("a conditional node that can't be is refused, and the graph is as before") {
    CHECK(in_child(one_t4, [](const Report& report) {
              const Scene scene(report);
              CUgraphConditionalHandle none = 0;
              EXPECT_EQUAL(cuGraphConditionalHandleCreate(&none, scene.graph, nullptr, 0, 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuGraphConditionalHandleCreate(&none, scene.graph, scene.context, 0, 2),
                           CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuGraphConditionalHandleCreate(&none, nullptr, scene.context, 0, 0),
                           CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(none, 0u);
              const CUgraphConditionalHandle handle = scene.handle(1);
              EXPECT_EQUAL(scene.add(scene.graph, handle + 1, CU_GRAPH_COND_TYPE_IF, 1), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(scene.add(scene.graph, handle, CU_GRAPH_COND_TYPE_IF, 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(scene.add(scene.graph, handle, CU_GRAPH_COND_TYPE_IF, 3), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(scene.add(scene.graph, handle, CU_GRAPH_COND_TYPE_WHILE, 2), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(scene.add(scene.graph, handle, CU_GRAPH_COND_TYPE_SWITCH, 0), CUDA_ERROR_INVALID_VALUE);
              size_t nodes = 9;
              EXPECT_EQUAL(cuGraphGetNodes(scene.graph, nullptr, &nodes), CUDA_SUCCESS);
              EXPECT_EQUAL(nodes, 0u);
              // A handle without a node is told apart.
              CUgraphExec exec = nullptr;
              CUDA_GRAPH_INSTANTIATE_PARAMS params{};
              EXPECT_EQUAL(cuGraphInstantiateWithParams(&exec, scene.graph, &params), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(params.result_out, CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
              CUgraph* bodies = nullptr;
              EXPECT_EQUAL(scene.add(scene.graph, handle, CU_GRAPH_COND_TYPE_IF, 1, &bodies), CUDA_SUCCESS);
              EXPECT_EQUAL(scene.add(scene.graph, handle, CU_GRAPH_COND_TYPE_IF, 1), CUDA_ERROR_INVALID_VALUE);
              // A node that is destroyed gives its handle back.
              CUgraphNode node = nullptr;
              EXPECT_EQUAL(cuGraphGetNodes(scene.graph, &node, &(nodes = 1)), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphDestroyNode(node), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphDestroyNode(node), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuGraphInstantiate(&exec, scene.graph, 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(scene.add(scene.graph, handle, CU_GRAPH_COND_TYPE_IF, 1, &bodies), CUDA_SUCCESS);
              // Documented: no copies, and no host functions in bodies.
              CUgraph copy = nullptr, other = nullptr;
              EXPECT_EQUAL(cuGraphClone(&copy, scene.graph), CUDA_ERROR_NOT_SUPPORTED);
              EXPECT_EQUAL(cuGraphCreate(&other, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddChildGraphNode(&node, other, nullptr, 0, scene.graph), CUDA_ERROR_NOT_SUPPORTED);
              EXPECT_EQUAL(cuGraphDestroy(bodies[0]), CUDA_ERROR_INVALID_VALUE);
              const CUDA_HOST_NODE_PARAMS host{[](void*) {}, nullptr};
              EXPECT_EQUAL(cuGraphAddHostNode(&node, bodies[0], nullptr, 0, &host), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphInstantiate(&exec, scene.graph, 0), CUDA_ERROR_NOT_SUPPORTED);
              EXPECT_EQUAL(cuGraphDestroy(scene.graph), CUDA_SUCCESS);
          }) == "");
}
