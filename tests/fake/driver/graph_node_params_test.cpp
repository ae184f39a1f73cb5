// SPDX-License-Identifier: Apache-2.0
// Parameters of nodes: read back as they were given or captured, and changed in a graph and in its instances.

#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"
#include "tests/fake/driver/sample_ptx.h"

using namespace fake_test;

namespace {

void CUDA_CB do_nothing(void*) {}
void CUDA_CB add_one(void* number) { ++*static_cast<int*>(number); }

/// A kernel with five parameters, of which the third is an int.
struct Kernel {
    CUfunction function = nullptr;
    CUdeviceptr from = 1, to = 2;
    int count = 3;
    char box[24] = "a box", flag = 1;
    void* arguments[5] = {&from, &to, &count, box, &flag};

    explicit Kernel(const Report& report) {
        CUmodule module = nullptr;
        EXPECT_EQUAL(cuModuleLoadData(&module, sample_ptx), CUDA_SUCCESS);
        EXPECT_EQUAL(cuModuleGetFunction(&function, module, "add"), CUDA_SUCCESS);
    }
    CUDA_KERNEL_NODE_PARAMS launch() {
        CUDA_KERNEL_NODE_PARAMS params{};
        params.func = function;
        params.gridDimX = params.gridDimY = params.gridDimZ = 1;
        params.blockDimX = params.blockDimY = params.blockDimZ = 1;
        params.kernelParams = arguments;
        return params;
    }
};

int third_argument(const Report& report, CUgraphNode node) {
    CUDA_KERNEL_NODE_PARAMS told{};
    EXPECT_EQUAL(cuGraphKernelNodeGetParams(node, &told), CUDA_SUCCESS);
    return told.kernelParams != nullptr ? *static_cast<int*>(told.kernelParams[2]) : -1;
}

CUgraphNode only_node(const Report& report, CUgraph graph) {
    CUgraphNode node = nullptr;
    size_t count = 1;
    EXPECT_EQUAL(cuGraphGetNodes(graph, &node, &count), CUDA_SUCCESS);
    return node;
}

/// Captures what `work` submits to a stream; the one node that it becomes.
template <typename Work>
CUgraphNode captured(const Report& report, Work work) {
    CUstream stream = nullptr;
    CUgraph graph = nullptr;
    EXPECT_EQUAL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    EXPECT_EQUAL(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
    EXPECT_EQUAL(work(stream), CUDA_SUCCESS);
    EXPECT_EQUAL(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    return only_node(report, graph);
}

CUgraphExec instantiated(const Report& report, CUgraph graph) {
    CUgraphExec exec = nullptr;
    EXPECT_EQUAL(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
    return exec;
}

/// A graph that fills a word with a value, and what is in that word after a launch.
struct Fill {
    CUgraph graph = nullptr;
    CUgraphNode node = nullptr;
    CUDA_MEMSET_NODE_PARAMS params{};

    Fill(const Report& report, CUdeviceptr word, unsigned value) : params{word, 0, value, 4, 1, 1} {
        CUcontext context = nullptr;
        EXPECT_EQUAL(cuCtxGetCurrent(&context), CUDA_SUCCESS);
        EXPECT_EQUAL(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
        EXPECT_EQUAL(cuGraphAddMemsetNode(&node, graph, nullptr, 0, &params, context), CUDA_SUCCESS);
    }
};

int launched(const Report& report, CUgraphExec exec, CUdeviceptr word) {
    int value = 0;
    EXPECT_EQUAL(cuMemsetD32(word, 0, 1), CUDA_SUCCESS);
    EXPECT_EQUAL(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
    EXPECT_EQUAL(cuMemcpyDtoH(&value, word, 4), CUDA_SUCCESS);
    return value;
}

}  // namespace

TEST_CASE("a kernel's arguments are the node's own copy, in either form") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              Kernel kernel(report);
              CUgraph graph = nullptr;
              CUgraphNode node = nullptr;
              CUDA_KERNEL_NODE_PARAMS launch = kernel.launch(), told{};
              EXPECT_EQUAL(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddKernelNode(&node, graph, nullptr, 0, &launch), CUDA_SUCCESS);
              kernel.count = 99;
              EXPECT_EQUAL(third_argument(report, node), 3);
              EXPECT_EQUAL(cuGraphKernelNodeSetParams(node, &launch), CUDA_SUCCESS);
              EXPECT_EQUAL(third_argument(report, node), 99);
              launch.gridDimX = 0;
              EXPECT_EQUAL(cuGraphKernelNodeSetParams(node, &launch), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(third_argument(report, node), 99);
              // As one buffer: what was told last is told again.
              unsigned char buffer[64] = {};
              size_t size = sizeof buffer;
              void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                               CU_LAUNCH_PARAM_END};
              launch.gridDimX = 4;
              launch.kernelParams = nullptr;
              launch.extra = extra;
              buffer[16] = 5;
              EXPECT_EQUAL(cuGraphKernelNodeSetParams(node, &launch), CUDA_SUCCESS);
              buffer[16] = 0;
              EXPECT_EQUAL(cuGraphKernelNodeGetParams(node, &told), CUDA_SUCCESS);
              EXPECT(told.kernelParams == nullptr && told.extra != nullptr);
              EXPECT_EQUAL(told.gridDimX, 4U);
              EXPECT_EQUAL(int{static_cast<unsigned char*>(told.extra[1])[16]}, 5);
              CUDA_MEMCPY3D copy{};
              EXPECT_EQUAL(cuGraphMemcpyNodeGetParams(node, &copy), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}

TEST_CASE("captured work is told as nodes of its kind") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              Kernel kernel(report);
              CUdeviceptr word = 0;
              EXPECT_EQUAL(cuMemAlloc(&word, 512), CUDA_SUCCESS);
              const CUgraphNode launch = captured(report, [&](CUstream stream) {
                  return cuLaunchKernel(kernel.function, 2, 1, 1, 8, 1, 1, 16, stream, kernel.arguments, nullptr);
              });
              kernel.count = 99;
              EXPECT_EQUAL(third_argument(report, launch), 3);
              CUDA_KERNEL_NODE_PARAMS told{};
              EXPECT_EQUAL(cuGraphKernelNodeGetParams(launch, &told), CUDA_SUCCESS);
              EXPECT(told.func == kernel.function && told.gridDimX == 2 && told.blockDimX == 8);
              EXPECT_EQUAL(told.sharedMemBytes, 16U);

              CUDA_MEMSET_NODE_PARAMS fill{};
              const CUgraphNode set =
                  captured(report, [&](CUstream stream) { return cuMemsetD2D16Async(word, 64, 7, 3, 2, stream); });
              EXPECT_EQUAL(cuGraphMemsetNodeGetParams(set, &fill), CUDA_SUCCESS);
              EXPECT(fill.dst == word && fill.pitch == 64 && fill.value == 7 && fill.elementSize == 2);
              EXPECT(fill.width == 3 && fill.height == 2);

              CUDA_MEMCPY3D copy{};
              const CUgraphNode copied =
                  captured(report, [&](CUstream stream) { return cuMemcpyDtoDAsync(word + 256, word, 24, stream); });
              EXPECT_EQUAL(cuGraphMemcpyNodeGetParams(copied, &copy), CUDA_SUCCESS);
              EXPECT(copy.srcDevice == word && copy.dstDevice == word + 256 && copy.WidthInBytes == 24);
              EXPECT(copy.srcMemoryType == CU_MEMORYTYPE_DEVICE && copy.Height == 1 && copy.Depth == 1);
              EXPECT_EQUAL(cuGraphMemcpyNodeSetParams(copied, &copy), CUDA_SUCCESS);

              CUDA_HOST_NODE_PARAMS host{};
              const CUgraphNode called =
                  captured(report, [&](CUstream stream) { return cuLaunchHostFunc(stream, do_nothing, &word); });
              EXPECT_EQUAL(cuGraphHostNodeGetParams(called, &host), CUDA_SUCCESS);
              EXPECT(host.fn == do_nothing && host.userData == &word);
          }) == "");
}

TEST_CASE("a copy or fill that names no context runs in the current one, where its type is a parameter") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUdeviceptr word = 0;
              CUgraph graph = nullptr;
              CUgraphNode fill = nullptr, copy = nullptr, none = nullptr;
              CUgraphNodeParams params{};
              EXPECT_EQUAL(cuMemAlloc(&word, 512), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
              params.type = CU_GRAPH_NODE_TYPE_MEMSET;
              params.memset = {word, 0, 7, 4, 1, 1, nullptr};
              EXPECT_EQUAL(cuGraphAddNode(&fill, graph, nullptr, nullptr, 0, &params), CUDA_SUCCESS);
              params.memset.value = 8;
              EXPECT_EQUAL(cuGraphNodeSetParams(fill, &params), CUDA_SUCCESS);
              const CUgraphExec exec = instantiated(report, graph);
              EXPECT_EQUAL(launched(report, exec, word), 8);
              params.memset.value = 9;
              EXPECT_EQUAL(cuGraphExecNodeSetParams(exec, fill, &params), CUDA_SUCCESS);
              EXPECT_EQUAL(launched(report, exec, word), 9);
              params = {};
              params.type = CU_GRAPH_NODE_TYPE_MEMCPY;
              CUDA_MEMCPY3D& run = params.memcpy.copyParams;
              run.srcMemoryType = run.dstMemoryType = CU_MEMORYTYPE_DEVICE;
              run.srcDevice = word;
              run.dstDevice = word + 256;
              run.WidthInBytes = run.Height = run.Depth = 1;
              EXPECT_EQUAL(cuGraphAddNode(&copy, graph, nullptr, nullptr, 0, &params), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddNode(&none, graph, nullptr, nullptr, 0, &params), CUDA_ERROR_INVALID_CONTEXT);
          }) == "");
}

TEST_CASE("a node that is changed leaves instances as they are") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUdeviceptr word = 0;
              EXPECT_EQUAL(cuMemAlloc(&word, 512), CUDA_SUCCESS);
              Fill fill(report, word, 7);
              const CUgraphExec before = instantiated(report, fill.graph);
              fill.params.value = 8;
              EXPECT_EQUAL(cuGraphMemsetNodeSetParams(fill.node, &fill.params), CUDA_SUCCESS);
              EXPECT_EQUAL(launched(report, before, word), 7);
              EXPECT_EQUAL(launched(report, instantiated(report, fill.graph), word), 8);
              CUgraphNodeParams params{};
              params.type = CU_GRAPH_NODE_TYPE_HOST;
              params.host.fn = do_nothing;
              EXPECT_EQUAL(cuGraphNodeSetParams(fill.node, &params), CUDA_ERROR_INVALID_VALUE);  // another type
              params.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
              EXPECT_EQUAL(cuGraphNodeSetParams(fill.node, &params), CUDA_ERROR_NOT_SUPPORTED);
          }) == "");
}

TEST_CASE("a node of an instance is switched off and on") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUdeviceptr word = 0;
              EXPECT_EQUAL(cuMemAlloc(&word, 512), CUDA_SUCCESS);
              const Fill fill(report, word, 7);
              CUgraphNode host = nullptr;
              int calls = 0;
              unsigned enabled = 9;
              const CUDA_HOST_NODE_PARAMS call{add_one, &calls};
              EXPECT_EQUAL(cuGraphAddHostNode(&host, fill.graph, &fill.node, 1, &call), CUDA_SUCCESS);
              const CUgraphExec exec = instantiated(report, fill.graph);
              EXPECT_EQUAL(cuGraphNodeGetEnabled(exec, fill.node, &enabled), CUDA_SUCCESS);
              EXPECT_EQUAL(enabled, 1U);
              EXPECT_EQUAL(cuGraphNodeSetEnabled(exec, host, 0), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuGraphNodeSetEnabled(exec, fill.node, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(launched(report, exec, word), 0);
              EXPECT_EQUAL(cuGraphNodeSetEnabled(exec, fill.node, 5), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphNodeGetEnabled(exec, fill.node, &enabled), CUDA_SUCCESS);
              EXPECT_EQUAL(enabled, 1U);
              EXPECT_EQUAL(launched(report, exec, word), 7);
              EXPECT_EQUAL(calls, 2);
          }) == "");
}

TEST_CASE("an instance is updated from a graph that is the same but for its parameters, and from no other") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUdeviceptr word = 0;
              EXPECT_EQUAL(cuMemAlloc(&word, 512), CUDA_SUCCESS);
              const Fill fill(report, word, 7), other(report, word, 8);
              const CUgraphExec exec = instantiated(report, fill.graph);
              CUgraphExecUpdateResultInfo info{};
              EXPECT_EQUAL(cuGraphExecUpdate(exec, other.graph, &info), CUDA_SUCCESS);
              EXPECT_EQUAL(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
              EXPECT_EQUAL(launched(report, exec, word), 8);
              CUgraphNode empty = nullptr;
              EXPECT_EQUAL(cuGraphAddEmptyNode(&empty, fill.graph, &fill.node, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphExecUpdate(exec, fill.graph, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
              EXPECT_EQUAL(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
              EXPECT_EQUAL(cuGraphDestroyNode(fill.node), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphExecUpdate(exec, fill.graph, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
              EXPECT_EQUAL(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
              EXPECT(info.errorNode == empty);
              EXPECT_EQUAL(launched(report, exec, word), 8);
          }) == "");
}

TEST_CASE("an update pairs nodes by their edges, in whichever order they were made") {
    CHECK(in_child(one_t4, [](const Report& report) {
              const CUcontext context = use_device(report);
              CUdeviceptr word = 0;
              EXPECT_EQUAL(cuMemAlloc(&word, 512), CUDA_SUCCESS);
              const Fill fill(report, word, 7);
              CUgraphNode empty = nullptr, second[2] = {};
              CUgraph other = nullptr;
              const CUDA_MEMSET_NODE_PARAMS params{word, 0, 8, 4, 1, 1};
              EXPECT_EQUAL(cuGraphAddEmptyNode(&empty, fill.graph, &fill.node, 1), CUDA_SUCCESS);
              const CUgraphExec exec = instantiated(report, fill.graph);
              EXPECT_EQUAL(cuGraphCreate(&other, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddEmptyNode(&second[0], other, nullptr, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddMemsetNode(&second[1], other, nullptr, 0, &params, context), CUDA_SUCCESS);
              CUgraphExecUpdateResultInfo info{};
              EXPECT_EQUAL(cuGraphExecUpdate(exec, other, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
              EXPECT_EQUAL(cuGraphAddDependencies(other, &second[1], &second[0], nullptr, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphExecUpdate(exec, other, &info), CUDA_SUCCESS);
              EXPECT_EQUAL(launched(report, exec, word), 8);
          }) == "");
}

TEST_CASE("a graph that devices launch has kernels, copies and fills of one context alone") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUdeviceptr word = 0;
              EXPECT_EQUAL(cuMemAlloc(&word, 512), CUDA_SUCCESS);
              const Fill fill(report, word, 7);
              CUgraphExec exec = nullptr;
              CUDA_GRAPH_INSTANTIATE_PARAMS params{};
              params.flags = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
              EXPECT_EQUAL(cuGraphInstantiateWithParams(&exec, fill.graph, &params), CUDA_SUCCESS);
              EXPECT_EQUAL(launched(report, exec, word), 7);
              CUgraphNode host = nullptr;
              const CUDA_HOST_NODE_PARAMS call{do_nothing, nullptr};
              EXPECT_EQUAL(cuGraphAddHostNode(&host, fill.graph, nullptr, 0, &call), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphInstantiateWithParams(&exec, fill.graph, &params), CUDA_ERROR_NOT_SUPPORTED);
              EXPECT_EQUAL(params.result_out, CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED);
              EXPECT(params.hErrNode_out == host);
              CUgraph empty = nullptr;
              EXPECT_EQUAL(cuGraphCreate(&empty, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphInstantiateWithFlags(&exec, empty, params.flags), CUDA_ERROR_INVALID_VALUE);
              CUcontext second = nullptr;
              CUgraphNode there = nullptr;
              EXPECT_EQUAL(cuGraphDestroyNode(host), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxCreate(&second, nullptr, 0, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddMemsetNode(&there, fill.graph, nullptr, 0, &fill.params, second), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphInstantiateWithParams(&exec, fill.graph, &params), CUDA_ERROR_NOT_SUPPORTED);
              EXPECT_EQUAL(params.result_out, CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED);
              EXPECT(params.hErrNode_out == there);
          }) == "");
}

TEST_CASE("a graph is written for Graphviz, with parameters where they are asked for") {
    const Folder folder;
    const std::string path = folder.path() + "/graph.dot";
    CHECK(in_child(one_t4, [&](const Report& report) {
              use_device(report);
              CUdeviceptr word = 0;
              EXPECT_EQUAL(cuMemAlloc(&word, 512), CUDA_SUCCESS);
              const Fill fill(report, word, 7);
              CUgraphNode empty = nullptr;
              EXPECT_EQUAL(cuGraphAddEmptyNode(&empty, fill.graph, &fill.node, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphDebugDotPrint(fill.graph, "/nowhere/graph.dot", 0), CUDA_ERROR_OPERATING_SYSTEM);
              EXPECT_EQUAL(cuGraphDebugDotPrint(fill.graph, path.c_str(), 1U << 20), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuGraphDebugDotPrint(fill.graph, path.c_str(), CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS),
                           CUDA_SUCCESS);
          }) == "");
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    CHECK(text.str().find("digraph dot {") == 0);
    CHECK(text.str().find("memset") != std::string::npos);
    CHECK(text.str().find("value 7") != std::string::npos);
    CHECK(text.str().find("\"graph_1_node_0\" -> \"graph_1_node_1\";") != std::string::npos);
}
