// SPDX-License-Identifier: Apache-2.0
// Nodes that are added to a graph one by one, textures, and copies that run on over the rows of an array.

#include <cstring>

#include "tests/fake/runtime/registered.h"

using namespace cuslice::tests;

namespace {

void count_call(void* calls) { ++*static_cast<int*>(calls); }

/// The form of cudaGraphAddNode without edges.
cudaError_t add_node(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                     cudaGraphNodeParams* parameters) {
    if (runtime_major() == 12) {
        using Form =
            cudaError_t (*)(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t, cudaGraphNodeParams*);
        return reinterpret_cast<Form>(runtime_function("cudaGraphAddNode"))(node, graph, after, count, parameters);
    }
    return RT(cudaGraphAddNode)(node, graph, after, nullptr, count, parameters);
}

}  // namespace

SCENARIO_IN_CHILD("nodes that are added one by one run in their order") {
    Registered code;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    cudaGraphNode_t node[6] = {};
    void* pointer = nullptr;
    unsigned bytes = 0;
    int calls = 0;
    REQUIRE(RT(cudaMalloc)(&pointer, 4096) == cudaSuccess);
    REQUIRE(RT(cudaGraphCreate)(&graph, 0) == cudaSuccess);
    cudaMemsetParams fill{};
    fill.dst = pointer;
    fill.value = 5;
    fill.elementSize = 1;
    fill.width = 4096;
    fill.height = 1;
    CHECK(RT(cudaGraphAddMemsetNode)(&node[0], graph, nullptr, 0, &fill) == cudaSuccess);
    CHECK(RT(cudaGraphAddMemcpyNode1D)(&node[1], graph, node, 1, &bytes, pointer, 4, cudaMemcpyDeviceToHost) ==
          cudaSuccess);
    int value = 1;
    int* array = static_cast<int*>(pointer);
    void* arguments[] = {&array, &value};
    cudaKernelNodeParams launch{};
    launch.func = &code.fill;
    launch.gridDim = launch.blockDim = dim3(1);
    launch.kernelParams = arguments;
    CHECK(RT(cudaGraphAddKernelNode)(&node[2], graph, &node[1], 1, &launch) == cudaSuccess);
    launch.gridDim = dim3(0);
    CHECK(RT(cudaGraphAddKernelNode)(&node[3], graph, nullptr, 0, &launch) != cudaSuccess);
    const cudaHostNodeParams host{count_call, &calls};
    CHECK(RT(cudaGraphAddHostNode)(&node[3], graph, &node[2], 1, &host) == cudaSuccess);
    cudaMemAllocNodeParams memory{};
    memory.poolProps.allocType = cudaMemAllocationTypePinned;
    memory.poolProps.location = {cudaMemLocationTypeDevice, 0};
    memory.bytesize = 4096;
    CHECK(RT(cudaGraphAddMemAllocNode)(&node[4], graph, &node[3], 1, &memory) == cudaSuccess);
    CHECK(memory.dptr != nullptr);
    void* freed = nullptr;
    CHECK(RT(cudaGraphAddMemFreeNode)(&node[5], graph, &node[4], 1, memory.dptr) == cudaSuccess);
    CHECK(RT(cudaGraphMemFreeNodeGetParams)(node[5], &freed) == cudaSuccess);
    CHECK(freed == memory.dptr);
    REQUIRE(instantiate(&executable, graph) == cudaSuccess);
    CHECK(RT(cudaGraphLaunch)(executable, nullptr) == cudaSuccess);
    CHECK(RT(cudaDeviceSynchronize)() == cudaSuccess);
    CHECK(bytes == 0x05050505);
    CHECK(calls == 1);
}

SCENARIO_IN_CHILD("a node is added by its type, or refused by it") {
    if (runtime_major() < 12)
        return;
    cudaGraph_t graph = nullptr;
    cudaGraphNode_t node = nullptr;
    cudaGraphExec_t executable = nullptr;
    int calls = 0;
    REQUIRE(RT(cudaGraphCreate)(&graph, 0) == cudaSuccess);
    cudaGraphNodeParams parameters{};
    parameters.type = cudaGraphNodeTypeHost;
    parameters.host.fn = count_call;
    parameters.host.userData = &calls;
    CHECK(add_node(&node, graph, nullptr, 0, &parameters) == cudaSuccess);
    parameters = {};
    parameters.type = cudaGraphNodeTypeWaitEvent;
    CHECK(add_node(&node, graph, nullptr, 0, &parameters) == cudaErrorInvalidValue);  // for no event
    parameters.type = cudaGraphNodeTypeExtSemaphoreSignal;
    CHECK(add_node(&node, graph, nullptr, 0, &parameters) == cudaErrorNotSupported);
    CHECK(add_node(&node, graph, nullptr, 0, nullptr) == cudaErrorInvalidValue);
    REQUIRE(instantiate(&executable, graph) == cudaSuccess);
    CHECK(RT(cudaGraphLaunch)(executable, nullptr) == cudaSuccess);
    CHECK(RT(cudaDeviceSynchronize)() == cudaSuccess);
    CHECK(calls == 1);
}

SCENARIO_IN_CHILD("a conditional node's body runs by the value that its handle was made with") {
    if (runtime_major() < 12)
        return;
    cudaGraph_t graph = nullptr;
    cudaGraphNode_t node = nullptr, inner = nullptr;
    cudaGraphExec_t executable = nullptr;
    cudaGraphConditionalHandle handle = 0;
    void* pointer = nullptr;
    unsigned char bytes[2] = {};
    REQUIRE(RT(cudaMalloc)(&pointer, 2) == cudaSuccess);
    REQUIRE(RT(cudaMemset)(pointer, 0, 2) == cudaSuccess);
    REQUIRE(RT(cudaGraphCreate)(&graph, 0) == cudaSuccess);
    CHECK(RT(cudaGraphConditionalHandleCreate)(&handle, graph, 1, 2) == cudaErrorInvalidValue);
    REQUIRE(RT(cudaGraphConditionalHandleCreate)(&handle, graph, 1, cudaGraphCondAssignDefault) == cudaSuccess);
    cudaGraphNodeParams parameters{};
    parameters.type = cudaGraphNodeTypeConditional;
    parameters.conditional.handle = handle;
    parameters.conditional.type = cudaGraphCondTypeSwitch;
    parameters.conditional.size = 2;
    REQUIRE(add_node(&node, graph, nullptr, 0, &parameters) == cudaSuccess);
    REQUIRE(parameters.conditional.phGraph_out != nullptr);
    for (int i = 0; i < 2; i++) {
        cudaMemsetParams fill{};
        fill.dst = static_cast<char*>(pointer) + i;
        fill.value = 7;
        fill.elementSize = 1;
        fill.width = fill.height = 1;
        CHECK(RT(cudaGraphAddMemsetNode)(&inner, parameters.conditional.phGraph_out[i], nullptr, 0, &fill) ==
              cudaSuccess);
    }
    REQUIRE(instantiate(&executable, graph) == cudaSuccess);
    CHECK(RT(cudaGraphLaunch)(executable, nullptr) == cudaSuccess);
    CHECK(RT(cudaMemcpy)(bytes, pointer, 2, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK((bytes[0] == 0 && bytes[1] == 7));
}

SCENARIO_IN_CHILD("nodes of an instance are changed, by their functions and by their types") {
    Registered code;
    cudaGraph_t graph = nullptr, child = nullptr, own = nullptr;
    cudaGraphExec_t executable = nullptr;
    cudaGraphNode_t node[5] = {};
    void* pointer = nullptr;
    unsigned bytes = 0, other = 0;
    int calls = 0, other_calls = 0;
    REQUIRE(RT(cudaMalloc)(&pointer, 4096) == cudaSuccess);
    REQUIRE(RT(cudaGraphCreate)(&graph, 0) == cudaSuccess);
    REQUIRE(RT(cudaGraphCreate)(&child, 0) == cudaSuccess);
    cudaMemsetParams fill{};
    fill.dst = pointer;
    fill.value = 5;
    fill.elementSize = 1;
    fill.width = 4096;
    fill.height = 1;
    int value = 1;
    int* array = static_cast<int*>(pointer);
    void* arguments[] = {&array, &value};
    cudaKernelNodeParams launch{};
    launch.func = &code.fill;
    launch.gridDim = launch.blockDim = dim3(1);
    launch.kernelParams = arguments;
    cudaHostNodeParams host{count_call, &calls};
    REQUIRE(RT(cudaGraphAddMemsetNode)(&node[0], graph, nullptr, 0, &fill) == cudaSuccess);
    REQUIRE(RT(cudaGraphAddMemcpyNode1D)(&node[1], graph, node, 1, &bytes, pointer, 4, cudaMemcpyDeviceToHost) ==
            cudaSuccess);
    REQUIRE(RT(cudaGraphAddKernelNode)(&node[2], graph, &node[1], 1, &launch) == cudaSuccess);
    REQUIRE(RT(cudaGraphAddHostNode)(&node[3], child, nullptr, 0, &host) == cudaSuccess);
    REQUIRE(RT(cudaGraphAddChildGraphNode)(&node[4], graph, &node[2], 1, child) == cudaSuccess);
    CHECK(RT(cudaGraphChildGraphNodeGetGraph)(node[4], &own) == cudaSuccess);
    CHECK((own != nullptr && own != child));
    CHECK(RT(cudaGraphChildGraphNodeGetGraph)(node[2], &own) == cudaErrorInvalidValue);
    REQUIRE(instantiate(&executable, graph) == cudaSuccess);
    fill.value = 6;
    CHECK(RT(cudaGraphExecMemsetNodeSetParams)(executable, node[0], &fill) == cudaSuccess);
    CHECK(RT(cudaGraphExecMemcpyNodeSetParams1D)(executable, node[1], &other, pointer, 4, cudaMemcpyDeviceToHost) ==
          cudaSuccess);
    CHECK(RT(cudaGraphExecKernelNodeSetParams)(executable, node[2], &launch) == cudaSuccess);
    host.userData = &other_calls;
    CHECK(RT(cudaGraphExecHostNodeSetParams)(executable, node[3], &host) == cudaErrorInvalidValue);
    REQUIRE(RT(cudaGraphAddHostNode)(&node[3], own, nullptr, 0, &host) == cudaSuccess);
    CHECK(RT(cudaGraphExecChildGraphNodeSetParams)(executable, node[4], own) == cudaErrorInvalidValue);
    // Another kind of node, and none.
    CHECK(RT(cudaGraphExecMemsetNodeSetParams)(executable, node[2], &fill) == cudaErrorInvalidValue);
    CHECK(RT(cudaGraphExecMemsetNodeSetParams)(executable, node[0], nullptr) == cudaErrorInvalidValue);
    launch.gridDim = dim3(0);
    CHECK(RT(cudaGraphExecKernelNodeSetParams)(executable, node[2], &launch) != cudaSuccess);
    if (runtime_major() < 12)
        return;
    cudaGraphNodeParams by_type{};
    by_type.type = cudaGraphNodeTypeMemset;
    by_type.memset.dst = pointer;
    by_type.memset.value = 9;
    by_type.memset.elementSize = 1;
    by_type.memset.width = 4096;
    by_type.memset.height = 1;
    CHECK(RT(cudaGraphExecNodeSetParams)(executable, node[0], &by_type) == cudaSuccess);
    by_type.type = cudaGraphNodeTypeWaitEvent;
    CHECK(RT(cudaGraphExecNodeSetParams)(executable, node[0], &by_type) == cudaErrorInvalidValue);
    CHECK(RT(cudaGraphLaunch)(executable, nullptr) == cudaSuccess);
    CHECK(RT(cudaDeviceSynchronize)() == cudaSuccess);
    CHECK(bytes == 0);
    CHECK(other == 0x09090909);
    CHECK(calls == 1);
    CHECK(other_calls == 0);
}

SCENARIO_IN_CHILD("a run of bytes goes over the rows of an array and back") {
    using To = cudaError_t (*)(cudaArray_t, size_t, size_t, const void*, size_t, cudaMemcpyKind);
    using From = cudaError_t (*)(void*, cudaArray_const_t, size_t, size_t, size_t, cudaMemcpyKind);
    const auto to = reinterpret_cast<To>(runtime_function("cudaMemcpyToArray"));
    const auto from = reinterpret_cast<From>(runtime_function("cudaMemcpyFromArray"));
    const cudaChannelFormatDesc byte = RT(cudaCreateChannelDesc)(8, 0, 0, 0, cudaChannelFormatKindUnsigned);
    cudaArray_t array = nullptr;
    REQUIRE(RT(cudaMallocArray)(&array, &byte, 16, 8, 0) == cudaSuccess);
    char sent[100], received[100] = {};
    for (int i = 0; i < 100; i++)
        sent[i] = static_cast<char>(i);
    CHECK(to(array, 5, 1, sent, 100, cudaMemcpyHostToDevice) == cudaSuccess);  // to the middle of a row
    CHECK(from(received, array, 5, 1, 100, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(std::memcmp(sent, received, 100) == 0);
    // Between arrays of different rows: a piece lies in one row of either.
    using Between =
        cudaError_t (*)(cudaArray_t, size_t, size_t, cudaArray_const_t, size_t, size_t, size_t, cudaMemcpyKind);
    const auto between = reinterpret_cast<Between>(runtime_function("cudaMemcpyArrayToArray"));
    cudaArray_t narrow = nullptr;
    char moved[100] = {};
    REQUIRE(RT(cudaMallocArray)(&narrow, &byte, 12, 10, 0) == cudaSuccess);
    CHECK(between(narrow, 7, 0, array, 5, 1, 100, cudaMemcpyDeviceToDevice) == cudaSuccess);
    CHECK(from(moved, narrow, 7, 0, 100, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(std::memcmp(sent, moved, 100) == 0);
    CHECK(between(narrow, 7, 0, array, 5, 1, 114, cudaMemcpyDeviceToDevice) == cudaErrorInvalidValue);
    char row[16] = {};
    CHECK(RT(cudaMemcpy2DFromArray)(row, 16, array, 0, 2, 16, 1, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(row[0] == 11);
    const char other[112] = {};
    CHECK(to(array, 5, 1, other, 108, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);  // beyond the last row
    CHECK(from(received, array, 5, 1, 100, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(std::memcmp(sent, received, 100) == 0);
    CHECK(to(array, 16, 0, sent, 1, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    CHECK(to(array, 0, 0, sent, 1, static_cast<cudaMemcpyKind>(9)) == cudaErrorInvalidMemcpyDirection);
}

SCENARIO_IN_CHILD("a texture tells what it was made of, and a surface needs an array for one") {
    const cudaChannelFormatDesc floats = RT(cudaCreateChannelDesc)(32, 0, 0, 0, cudaChannelFormatKindFloat);
    cudaTextureObject_t texture = 0;
    cudaSurfaceObject_t surface = 0;
    cudaResourceDesc resource{}, found{};
    cudaTextureDesc how{}, told{};
    void* pointer = nullptr;
    REQUIRE(RT(cudaMalloc)(&pointer, 4096) == cudaSuccess);
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = pointer;
    resource.res.linear.desc = floats;
    resource.res.linear.sizeInBytes = 4096;
    how.readMode = cudaReadModeNormalizedFloat;
    how.normalizedCoords = 1;
    REQUIRE(RT(cudaCreateTextureObject)(&texture, &resource, &how, nullptr) == cudaSuccess);
    CHECK(RT(cudaGetTextureObjectResourceDesc)(&found, texture) == cudaSuccess);
    CHECK(found.resType == cudaResourceTypeLinear);
    CHECK(found.res.linear.devPtr == pointer);
    CHECK(found.res.linear.desc.x == 32);
    CHECK(RT(cudaGetTextureObjectTextureDesc)(&told, texture) == cudaSuccess);
    CHECK(told.readMode == cudaReadModeNormalizedFloat);
    CHECK(told.normalizedCoords == 1);
    CHECK(RT(cudaDestroyTextureObject)(texture) == cudaSuccess);
    CHECK(RT(cudaDestroyTextureObject)(texture) == cudaErrorInvalidValue);
    resource.res.linear.sizeInBytes = 4097;
    CHECK(RT(cudaCreateTextureObject)(&texture, &resource, &how, nullptr) == cudaErrorInvalidValue);
    cudaResourceDesc plain{}, loadable{};
    REQUIRE(RT(cudaMallocArray)(&plain.res.array.array, &floats, 16, 16, 0) == cudaSuccess);
    REQUIRE(RT(cudaMallocArray)(&loadable.res.array.array, &floats, 16, 16, cudaArraySurfaceLoadStore) == cudaSuccess);
    CHECK(RT(cudaCreateSurfaceObject)(&surface, &plain) == cudaErrorInvalidValue);
    CHECK(RT(cudaCreateSurfaceObject)(&surface, &loadable) == cudaSuccess);
    CHECK(RT(cudaDestroySurfaceObject)(surface) == cudaSuccess);
}
