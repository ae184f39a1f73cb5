// SPDX-License-Identifier: Apache-2.0
// Edges, events and parameters of a graph's nodes, in each library's forms.

#include <cuda.h>

#include "tests/fake/runtime/registered.h"

using namespace cuslice::tests;

namespace {

/// Forms without edge data, which 13 has no more.
bool old_forms() { return runtime_major() < 13; }

cudaError_t add_edge(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to) {
    using Form = cudaError_t (*)(cudaGraph_t, const cudaGraphNode_t*, const cudaGraphNode_t*, size_t);
    return old_forms() ? reinterpret_cast<Form>(runtime_function("cudaGraphAddDependencies"))(graph, &from, &to, 1)
                       : RT(cudaGraphAddDependencies)(graph, &from, &to, nullptr, 1);
}

cudaError_t remove_edge(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to) {
    using Form = cudaError_t (*)(cudaGraph_t, const cudaGraphNode_t*, const cudaGraphNode_t*, size_t);
    return old_forms() ? reinterpret_cast<Form>(runtime_function("cudaGraphRemoveDependencies"))(graph, &from, &to, 1)
                       : RT(cudaGraphRemoveDependencies)(graph, &from, &to, nullptr, 1);
}

size_t dependencies(cudaGraphNode_t node) {
    using Form = cudaError_t (*)(cudaGraphNode_t, cudaGraphNode_t*, size_t*);
    size_t count = 99;
    if (old_forms())
        reinterpret_cast<Form>(runtime_function("cudaGraphNodeGetDependencies"))(node, nullptr, &count);
    else
        RT(cudaGraphNodeGetDependencies)(node, nullptr, nullptr, &count);
    return count;
}

void do_nothing(void*) {}

}  // namespace

SCENARIO_IN_CHILD("edges between nodes are added, told and removed") {
    cudaGraph_t graph = nullptr, clone = nullptr;
    cudaGraphNode_t node[2] = {}, copy = nullptr;
    REQUIRE(RT(cudaGraphCreate)(&graph, 0) == cudaSuccess);
    for (cudaGraphNode_t& one : node)
        REQUIRE(RT(cudaGraphAddEmptyNode)(&one, graph, nullptr, 0) == cudaSuccess);
    CHECK(add_edge(graph, node[0], node[1]) == cudaSuccess);
    CHECK(add_edge(graph, node[0], node[1]) == cudaErrorInvalidValue);
    CHECK(dependencies(node[1]) == 1);
    REQUIRE(RT(cudaGraphClone)(&clone, graph) == cudaSuccess);
    CHECK(RT(cudaGraphNodeFindInClone)(&copy, node[1], clone) == cudaSuccess);
    CHECK(dependencies(copy) == 1);
    CHECK(remove_edge(graph, node[0], node[1]) == cudaSuccess);
    CHECK(dependencies(node[1]) == 0);
    CHECK(dependencies(copy) == 1);
}

SCENARIO_IN_CHILD("nodes record events and wait for them") {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    cudaGraphNode_t record = nullptr, wait = nullptr;
    cudaEvent_t event[2] = {}, told = nullptr;
    for (cudaEvent_t& one : event)
        REQUIRE(RT(cudaEventCreateWithFlags)(&one, cudaEventDefault) == cudaSuccess);
    REQUIRE(RT(cudaGraphCreate)(&graph, 0) == cudaSuccess);
    CHECK(RT(cudaGraphAddEventRecordNode)(&record, graph, nullptr, 0, event[0]) == cudaSuccess);
    CHECK(RT(cudaGraphAddEventWaitNode)(&wait, graph, &record, 1, event[0]) == cudaSuccess);
    CHECK(RT(cudaGraphEventWaitNodeSetEvent)(wait, event[1]) == cudaSuccess);
    CHECK(RT(cudaGraphEventWaitNodeGetEvent)(wait, &told) == cudaSuccess);
    CHECK(told == event[1]);
    CHECK(RT(cudaGraphEventRecordNodeGetEvent)(wait, &told) == cudaErrorInvalidValue);
    REQUIRE(instantiate(&executable, graph) == cudaSuccess);
    CHECK(RT(cudaGraphExecEventRecordNodeSetEvent)(executable, record, event[1]) == cudaSuccess);
    CHECK(RT(cudaGraphExecEventWaitNodeSetEvent)(executable, wait, event[0]) == cudaSuccess);
    CHECK(RT(cudaGraphLaunch)(executable, nullptr) == cudaSuccess);
    CHECK(RT(cudaEventSynchronize)(event[1]) == cudaSuccess);
    if (runtime_major() == 11)
        return;
    cudaGraphNodeParams params{};
    params.type = cudaGraphNodeTypeEventRecord;
    params.eventRecord.event = event[0];
    CHECK(RT(cudaGraphExecNodeSetParams)(executable, record, &params) == cudaSuccess);
    CHECK(RT(cudaGraphNodeSetParams)(wait, &params) == cudaErrorInvalidValue);
    CHECK(RT(cudaGraphNodeSetParams)(record, &params) == cudaSuccess);
}

SCENARIO_IN_CHILD("a kernel node's arguments are told where the driver knows the kernel's parameters") {
    Registered code;
    cudaGraph_t graph = nullptr;
    cudaGraphNode_t node = nullptr;
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    int value = 7;
    void* arguments[] = {&value};
    cudaKernelNodeParams launch{}, told{};
    launch.func = &code.fill;
    launch.gridDim = dim3(3);
    launch.blockDim = dim3(32);
    launch.kernelParams = arguments;
    REQUIRE(RT(cudaGraphCreate)(&graph, 0) == cudaSuccess);
    REQUIRE(RT(cudaGraphAddKernelNode)(&node, graph, nullptr, 0, &launch) == cudaSuccess);
    CHECK(RT(cudaGraphKernelNodeGetParams)(node, &told) == cudaErrorNotSupported);
    launch.gridDim = dim3(0);
    CHECK(RT(cudaGraphKernelNodeSetParams)(node, &launch) == cudaErrorInvalidValue);
    launch.gridDim = dim3(4);
    CHECK(RT(cudaGraphKernelNodeSetParams)(node, &launch) == cudaSuccess);
    if (runtime_major() == 11)
        return;  // it takes no kernels of the driver's
    const char* const ptx =
        ".version 7.0\n.target sm_50\n.address_size 64\n"
        ".visible .entry one(.param .u32 one_param_0) { ret; }\n";
    const auto load = reinterpret_cast<CUresult (*)(CUmodule*, const void*)>(driver_function("cuModuleLoadData"));
    const auto find =
        reinterpret_cast<CUresult (*)(CUfunction*, CUmodule, const char*)>(driver_function("cuModuleGetFunction"));
    REQUIRE(load(&module, ptx) == CUDA_SUCCESS);
    REQUIRE(find(&function, module, "one") == CUDA_SUCCESS);
    launch.func = function;
    REQUIRE(RT(cudaGraphAddKernelNode)(&node, graph, nullptr, 0, &launch) == cudaSuccess);
    value = 8;
    REQUIRE(RT(cudaGraphKernelNodeGetParams)(node, &told) == cudaSuccess);
    CHECK(told.func == function);
    CHECK(told.gridDim.x == 4);
    CHECK(told.blockDim.x == 32);
    REQUIRE(told.kernelParams != nullptr);
    CHECK(*static_cast<int*>(told.kernelParams[0]) == 7);
    CHECK(RT(cudaGraphKernelNodeSetParams)(node, &told) == cudaSuccess);  // from memory that the node owns
    CHECK(RT(cudaGraphKernelNodeGetParams)(node, &told) == cudaSuccess);
    CHECK(*static_cast<int*>(told.kernelParams[0]) == 7);
}

SCENARIO_IN_CHILD("copies, fills and host functions are told as they were given") {
    cudaGraph_t graph = nullptr;
    cudaGraphNode_t copied = nullptr, from_array = nullptr, filled = nullptr, called = nullptr;
    void* pointer = nullptr;
    char host_bytes[64] = {};
    REQUIRE(RT(cudaMalloc)(&pointer, 4096) == cudaSuccess);
    REQUIRE(RT(cudaGraphCreate)(&graph, 0) == cudaSuccess);
    CHECK(RT(cudaGraphAddMemcpyNode1D)(&copied, graph, nullptr, 0, pointer, host_bytes, 64, cudaMemcpyHostToDevice) ==
          cudaSuccess);
    cudaMemcpy3DParms copy{};
    CHECK(RT(cudaGraphMemcpyNodeGetParams)(copied, &copy) == cudaSuccess);
    CHECK(copy.kind == cudaMemcpyHostToDevice);
    CHECK(copy.srcPtr.ptr == host_bytes);
    CHECK(copy.dstPtr.ptr == pointer);
    CHECK(copy.extent.width == 64);
    CHECK(RT(cudaGraphMemcpyNodeSetParams1D)(copied, host_bytes, pointer, 32, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(RT(cudaGraphMemcpyNodeGetParams)(copied, &copy) == cudaSuccess);
    CHECK(copy.kind == cudaMemcpyDeviceToHost);
    CHECK(copy.srcPtr.ptr == pointer);
    CHECK(copy.extent.width == 32);

    // With an array positions and widths are of its elements.
    const cudaChannelFormatDesc floats = RT(cudaCreateChannelDesc)(32, 0, 0, 0, cudaChannelFormatKindFloat);
    cudaArray_t array = nullptr;
    REQUIRE(RT(cudaMallocArray)(&array, &floats, 16, 16, 0) == cudaSuccess);
    cudaMemcpy3DParms given{};
    given.srcArray = array;
    given.srcPos = {4, 2, 0};
    given.dstPtr = {pointer, 32, 8, 3};
    given.extent = {8, 3, 1};
    given.kind = cudaMemcpyDeviceToDevice;
    REQUIRE(RT(cudaGraphAddMemcpyNode)(&from_array, graph, nullptr, 0, &given) == cudaSuccess);
    CHECK(RT(cudaGraphMemcpyNodeGetParams)(from_array, &copy) == cudaSuccess);
    CHECK(copy.srcArray == array);
    CHECK(copy.srcPos.x == 4);
    CHECK(copy.srcPos.y == 2);
    CHECK(copy.extent.width == 8);
    CHECK(copy.dstPtr.pitch == 32);
    CHECK(RT(cudaGraphMemcpyNodeSetParams)(from_array, &copy) == cudaSuccess);

    cudaMemsetParams fill{pointer, 0, 7, 4, 16, 1}, told{};
    REQUIRE(RT(cudaGraphAddMemsetNode)(&filled, graph, nullptr, 0, &fill) == cudaSuccess);
    fill.value = 9;
    CHECK(RT(cudaGraphMemsetNodeSetParams)(filled, &fill) == cudaSuccess);
    CHECK(RT(cudaGraphMemsetNodeGetParams)(filled, &told) == cudaSuccess);
    CHECK(told.dst == pointer);
    CHECK(told.value == 9);
    CHECK(told.width == 16);

    const cudaHostNodeParams host{do_nothing, &fill};
    cudaHostNodeParams call{};
    REQUIRE(RT(cudaGraphAddHostNode)(&called, graph, nullptr, 0, &host) == cudaSuccess);
    CHECK(RT(cudaGraphHostNodeGetParams)(called, &call) == cudaSuccess);
    CHECK(call.fn == do_nothing);
    CHECK(call.userData == &fill);
    CHECK(RT(cudaGraphHostNodeGetParams)(filled, &call) == cudaErrorInvalidValue);
}

SCENARIO_IN_CHILD("a node of an instance is switched off") {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    cudaGraphNode_t filled = nullptr;
    void* pointer = nullptr;
    unsigned enabled = 9, value = 0;
    REQUIRE(RT(cudaMalloc)(&pointer, 4096) == cudaSuccess);
    REQUIRE(RT(cudaMemset)(pointer, 0, 4) == cudaSuccess);
    REQUIRE(RT(cudaGraphCreate)(&graph, 0) == cudaSuccess);
    const cudaMemsetParams fill{pointer, 0, 7, 4, 1, 1};
    REQUIRE(RT(cudaGraphAddMemsetNode)(&filled, graph, nullptr, 0, &fill) == cudaSuccess);
    REQUIRE(instantiate(&executable, graph) == cudaSuccess);
    CHECK(RT(cudaGraphNodeSetEnabled)(executable, filled, 0) == cudaSuccess);
    CHECK(RT(cudaGraphNodeGetEnabled)(executable, filled, &enabled) == cudaSuccess);
    CHECK(enabled == 0);
    CHECK(RT(cudaGraphLaunch)(executable, nullptr) == cudaSuccess);
    CHECK(RT(cudaMemcpy)(&value, pointer, 4, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(value == 0);
}

SCENARIO_IN_CHILD("a node with data at its edge is added") {
    if (runtime_major() == 11)
        return;
    Registered code;
    cudaGraph_t graph = nullptr;
    cudaGraphNode_t first = nullptr, second = nullptr;
    cudaGraphNodeParams params{};
    params.type = cudaGraphNodeTypeKernel;
    params.kernel.func = &code.bump;
    params.kernel.gridDim = params.kernel.blockDim = dim3(1);
    cudaGraphEdgeData early{};
    early.from_port = cudaGraphKernelNodePortProgrammatic;
    early.type = cudaGraphDependencyTypeProgrammatic;
    using Form = cudaError_t (*)(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, const cudaGraphEdgeData*,
                                 size_t, cudaGraphNodeParams*);
    const auto add =
        reinterpret_cast<Form>(runtime_function(runtime_major() == 12 ? "cudaGraphAddNode_v2" : "cudaGraphAddNode"));
    REQUIRE(RT(cudaGraphCreate)(&graph, 0) == cudaSuccess);
    CHECK(add(&first, graph, nullptr, nullptr, 0, &params) == cudaSuccess);
    CHECK(add(&second, graph, &first, &early, 1, &params) == cudaSuccess);
    early.type = 9;
    CHECK(add(&second, graph, &first, &early, 1, &params) == cudaErrorInvalidValue);
    CHECK(dependencies(second) == 1);
}

SCENARIO_IN_CHILD("a batch of managed ranges is prefetched and discarded") {
    if (runtime_major() != 13)
        return;
    void* range[2] = {};
    size_t sizes[2] = {4096, 8192}, index[2] = {0, 1};
    cudaMemLocation places[2] = {{cudaMemLocationTypeDevice, 0}, {cudaMemLocationTypeHost, 0}};
    cudaStream_t stream = nullptr;
    int device = -9;
    REQUIRE(RT(cudaStreamCreate)(&stream) == cudaSuccess);
    for (int i = 0; i < 2; i++)
        REQUIRE(RT(cudaMallocManaged)(&range[i], sizes[i], cudaMemAttachGlobal) == cudaSuccess);
    const auto prefetch = RT(cudaMemPrefetchBatchAsync);
    CHECK(prefetch(range, sizes, 2, places, index, 2, 0, stream) == cudaSuccess);
    CHECK(RT(cudaMemRangeGetAttribute)(&device, 4, cudaMemRangeAttributeLastPrefetchLocation, range[0], 4096) ==
          cudaSuccess);
    CHECK(device == 0);
    CHECK(RT(cudaMemRangeGetAttribute)(&device, 4, cudaMemRangeAttributeLastPrefetchLocation, range[1], 8192) ==
          cudaSuccess);
    CHECK(device == cudaCpuDeviceId);
    CHECK(prefetch(range, sizes, 2, places, index, 2, 0, nullptr) == cudaErrorInvalidValue);  // the legacy stream
    CHECK(prefetch(range, sizes, 2, places, index, 2, 1, stream) == cudaErrorInvalidValue);
    index[0] = 1;
    CHECK(prefetch(range, sizes, 2, places, index, 2, 0, stream) == cudaErrorInvalidValue);
    CHECK(RT(cudaMemDiscardBatchAsync)(range, sizes, 2, 0, stream) == cudaSuccess);
    sizes[1] = 1 << 20;
    CHECK(RT(cudaMemDiscardBatchAsync)(range, sizes, 2, 0, stream) == cudaErrorInvalidValue);
}
