// SPDX-License-Identifier: Apache-2.0
// Memory of graphs: taken at the launch, kept for the next one, given back by a trim.

#include <cstdint>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

namespace {

const Environment laptop = {{"CUSLICE_FAKE", "laptop-2g"}};  // its pools grow by 2 MiB

uint64_t graph_figure(CUgraphMem_attribute attribute) {
    cuuint64_t bytes = 0;
    return cuDeviceGetGraphMemAttribute(0, attribute, &bytes) == CUDA_SUCCESS ? bytes : ~uint64_t{0};
}
uint64_t used() { return graph_figure(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT); }
uint64_t reserved() { return graph_figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT); }

/// Appends an allocation node and returns its address.
CUdeviceptr add_allocation(const Report& report, CUgraph graph, size_t bytes) {
    CUDA_MEM_ALLOC_NODE_PARAMS params{};
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    params.bytesize = bytes;
    CUgraphNode node = nullptr;
    EXPECT_EQUAL(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &params), CUDA_SUCCESS);
    CUDA_MEM_ALLOC_NODE_PARAMS read{};
    EXPECT_EQUAL(cuGraphMemAllocNodeGetParams(node, &read), CUDA_SUCCESS);
    EXPECT_EQUAL(read.bytesize, bytes);
    EXPECT_EQUAL(read.dptr, params.dptr);
    return params.dptr;
}

CUresult add_free(CUgraph graph, CUdeviceptr address) {
    CUgraphNode node = nullptr;
    return cuGraphAddMemFreeNode(&node, graph, nullptr, 0, address);
}

}  // namespace

TEST_CASE("a graph's allocation has an address when it is made, and memory when it is launched", "[at once]") {
    CHECK(in_child(laptop, [](const Report& report) {
              use_device(report);
              const size_t free = free_bytes();
              CUgraph graph = nullptr;
              CUgraphExec exec = nullptr, second = nullptr;
              EXPECT_EQUAL(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
              const CUdeviceptr a = add_allocation(report, graph, 5 * MiB), b = add_allocation(report, graph, 1000);
              EXPECT_EQUAL(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphInstantiate(&second, graph, 0), CUDA_ERROR_INVALID_VALUE);  // one at a time
              EXPECT_EQUAL(free_bytes(), free);
              EXPECT_EQUAL(cuMemFree(a), CUDA_ERROR_INVALID_VALUE);  // not live yet
              EXPECT_EQUAL(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), free - 6 * MiB);
              EXPECT_EQUAL(used(), 5 * MiB + 1024);
              EXPECT_EQUAL(cuMemsetD8(a, 1, 5 * MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemsetD8(a, 1, 5 * MiB + 1), CUDA_ERROR_INVALID_VALUE);
              // Memory of the last launch is still there.
              EXPECT_EQUAL(cuGraphLaunch(exec, nullptr), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuMemFreeAsync(a, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemFreeAsync(a, nullptr), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(used(), 1024U);
              EXPECT_EQUAL(cuMemFree(b), CUDA_SUCCESS);
              EXPECT_EQUAL(used(), 0U);
              EXPECT_EQUAL(free_bytes(), free - 6 * MiB);  // kept for the next launch
              EXPECT_EQUAL(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), free - 6 * MiB);
              EXPECT_EQUAL(cuMemFree(a), CUDA_SUCCESS);
              EXPECT_EQUAL(cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), free - 2 * MiB);  // what is live keeps its chunk
              // It outlives its graph and instance.
              EXPECT_EQUAL(cuGraphExecDestroy(exec), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphDestroy(graph), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemsetD8(b, 1, 1000), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemFree(b), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemsetD8(b, 1, 1000), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), free);
          }) == "");
}

TEST_CASE("a launch takes what its nodes need at the same time, and is refused if that isn't there") {
    CHECK(in_child(laptop, [](const Report& report) {
              use_device(report);
              const size_t free = free_bytes();
              CUgraph graph = nullptr;
              CUgraphExec exec = nullptr;
              EXPECT_EQUAL(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
              for (int i = 0; i < 3; i++) {  // one after the other
                  const CUdeviceptr a = add_allocation(report, graph, 400 * MiB);
                  EXPECT_EQUAL(add_free(graph, a), CUDA_SUCCESS);
                  EXPECT_EQUAL(add_free(graph, a), CUDA_ERROR_INVALID_VALUE);
              }
              EXPECT_EQUAL(add_free(graph, 4096), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
              for (int i = 0; i < 2; i++) {
                  EXPECT_EQUAL(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
                  EXPECT_EQUAL(free_bytes(), free - 400 * MiB);
                  EXPECT_EQUAL(used(), 0U);
              }
              EXPECT_EQUAL(graph_figure(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), 400 * MiB);
              EXPECT_EQUAL(graph_figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH), 400 * MiB);
              EXPECT_EQUAL(cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), free);
              cuuint64_t zero = 0, one = 1;
              EXPECT_EQUAL(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &one),
                           CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &zero), CUDA_SUCCESS);
              EXPECT_EQUAL(graph_figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH), 0U);
              EXPECT_EQUAL(cuGraphUpload(exec, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(reserved(), 400 * MiB);
              EXPECT_EQUAL(cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
              CUdeviceptr most = 0;
              EXPECT_EQUAL(cuMemAlloc(&most, free - 399 * MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphLaunch(exec, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
              EXPECT_EQUAL(cuGraphUpload(exec, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
              EXPECT_EQUAL(reserved(), 0U);
              EXPECT_EQUAL(cuMemFree(most), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
          }) == "");
}

TEST_CASE("captured allocations and frees become nodes, and an instance can free what its last launch left") {
    CHECK(in_child(laptop, [](const Report& report) {
              use_device(report);
              const size_t free = free_bytes();
              CUstream stream = nullptr;
              CUgraph graph = nullptr, clone = nullptr;
              CUgraphExec exec = nullptr;
              CUdeviceptr a = 0, b = 0;
              size_t count = 0;
              EXPECT_EQUAL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAllocAsync(&a, 3 * MiB, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemsetD32Async(a, 7, 1, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemAllocAsync(&b, 2 * MiB, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemFreeAsync(b, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
              EXPECT_EQUAL(free_bytes(), free);
              EXPECT_EQUAL(cuGraphGetNodes(graph, nullptr, &count), CUDA_SUCCESS);
              EXPECT_EQUAL(count, 4U);
              EXPECT_EQUAL(cuGraphClone(&clone, graph), CUDA_ERROR_NOT_SUPPORTED);
              EXPECT_EQUAL(cuGraphInstantiate(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH),
                           CUDA_SUCCESS);
              for (int i = 0; i < 3; i++) {
                  EXPECT_EQUAL(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuStreamSynchronize(stream), CUDA_SUCCESS);
                  int value = 0;
                  EXPECT_EQUAL(cuMemcpyDtoH(&value, a, 4), CUDA_SUCCESS);
                  EXPECT_EQUAL(value, 7);
                  EXPECT_EQUAL(used(), 3 * MiB);
                  EXPECT_EQUAL(free_bytes(), free - 6 * MiB);
              }
              EXPECT_EQUAL(cuMemFree(b), CUDA_ERROR_INVALID_VALUE);  // the graph's own to free
              EXPECT_EQUAL(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
              use_device(report);
              EXPECT_EQUAL(free_bytes(), free);
          }) == "");
}
