// SPDX-License-Identifier: Apache-2.0
// Edges between nodes: which there are, and that nodes run in their order.

#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"
#include "tests/fake/driver/sample_ptx.h"

using namespace fake_test;

namespace {

/// A host function's letter, and where it is written.
struct Letter {
    std::string* word;
    char letter;
};

void CUDA_CB append(void* data) {
    const auto* letter = static_cast<const Letter*>(data);
    *letter->word += letter->letter;
}

/// Nodes a, b and c in this order, each a host function that appends its letter; nothing depends on anything.
struct Letters {
    CUgraph graph = nullptr;
    std::string word;
    Letter letters[3] = {{&word, 'a'}, {&word, 'b'}, {&word, 'c'}};
    CUgraphNode node[3] = {};

    explicit Letters(const Report& report) {
        EXPECT_EQUAL(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
        for (int i = 0; i < 3; i++) {
            const CUDA_HOST_NODE_PARAMS host{append, &letters[i]};
            EXPECT_EQUAL(cuGraphAddHostNode(&node[i], graph, nullptr, 0, &host), CUDA_SUCCESS);
        }
    }
    CUresult edge(int from, int to) const {
        return cuGraphAddDependencies_v2(graph, &node[from], &node[to], nullptr, 1);
    }
    CUresult no_edge(int from, int to) const {
        return cuGraphRemoveDependencies_v2(graph, &node[from], &node[to], nullptr, 1);
    }
    size_t edges() const {
        size_t count = 99;
        cuGraphGetEdges_v2(graph, nullptr, nullptr, nullptr, &count);
        return count;
    }
    std::string run(const Report& report) {
        CUgraphExec exec = nullptr;
        word.clear();
        EXPECT_EQUAL(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
        EXPECT_EQUAL(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
        EXPECT_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
        EXPECT_EQUAL(cuGraphExecDestroy(exec), CUDA_SUCCESS);
        return word;
    }
};

CUgraphNode add_kernel(const Report& report, CUgraph graph) {
    CUmodule module = nullptr;
    CUgraphNode node = nullptr;
    CUDA_KERNEL_NODE_PARAMS launch{};
    launch.gridDimX = launch.gridDimY = launch.gridDimZ = 1;
    launch.blockDimX = launch.blockDimY = launch.blockDimZ = 1;
    EXPECT_EQUAL(cuModuleLoadData(&module, sample_ptx), CUDA_SUCCESS);
    EXPECT_EQUAL(cuModuleGetFunction(&launch.func, module, "bounded"), CUDA_SUCCESS);
    EXPECT_EQUAL(cuGraphAddKernelNode(&node, graph, nullptr, 0, &launch), CUDA_SUCCESS);
    return node;
}

}  // namespace

TEST_CASE("nodes run after what they depend on, whichever was made first") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              Letters letters(report);
              EXPECT_EQUAL(letters.run(report), std::string("abc"));
              EXPECT_EQUAL(letters.edge(2, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(letters.run(report), std::string("bca"));
              EXPECT_EQUAL(letters.edge(0, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(letters.run(report), std::string("cab"));
              EXPECT_EQUAL(letters.no_edge(2, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(letters.run(report), std::string("abc"));
          }) == "");
}

TEST_CASE("edges that can't be leave a graph as it was") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              Letters letters(report), other(report);
              const CUgraphNode* const node = letters.node;
              EXPECT_EQUAL(letters.edge(0, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(letters.edge(0, 1), CUDA_ERROR_INVALID_VALUE);  // it is there
              EXPECT_EQUAL(letters.edge(1, 1), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(letters.no_edge(1, 2), CUDA_ERROR_INVALID_VALUE);  // it isn't there
              EXPECT_EQUAL(cuGraphAddDependencies_v2(letters.graph, &node[0], &other.node[0], nullptr, 1),
                           CUDA_ERROR_INVALID_VALUE);
              // The second pair is there already: the first one isn't made either.
              const CUgraphNode from[] = {node[1], node[0]}, to[] = {node[2], node[1]};
              EXPECT_EQUAL(cuGraphAddDependencies_v2(letters.graph, from, to, nullptr, 2), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(letters.edges(), size_t{1});
              const CUgraphNode twice[] = {node[0], node[0]};
              CUgraphNode made = nullptr;
              EXPECT_EQUAL(cuGraphAddEmptyNode(&made, letters.graph, twice, 2), CUDA_ERROR_INVALID_VALUE);
              EXPECT(made == nullptr);
          }) == "");
}

TEST_CASE("nodes that depend on each other can't be instantiated, and one of them is named") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              Letters letters(report);
              EXPECT_EQUAL(letters.edge(1, 2), CUDA_SUCCESS);
              EXPECT_EQUAL(letters.edge(2, 1), CUDA_SUCCESS);
              CUgraphExec exec = nullptr;
              CUDA_GRAPH_INSTANTIATE_PARAMS params{};
              EXPECT_EQUAL(cuGraphInstantiateWithParams(&exec, letters.graph, &params), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(params.result_out, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
              EXPECT(params.hErrNode_out == letters.node[1]);
              EXPECT(exec == nullptr);
              EXPECT_EQUAL(letters.no_edge(2, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(letters.run(report), std::string("abc"));
          }) == "");
}

TEST_CASE("edges, dependencies, dependents and roots are told, as many as there is room for") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              Letters letters(report);
              const CUgraphNode* const node = letters.node;
              EXPECT_EQUAL(letters.edge(0, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(letters.edge(0, 2), CUDA_SUCCESS);
              EXPECT_EQUAL(letters.edge(1, 2), CUDA_SUCCESS);
              CUgraphNode from[4] = {}, to[4] = {};
              size_t count = 4;
              EXPECT_EQUAL(cuGraphGetEdges(letters.graph, from, to, nullptr, &count), CUDA_SUCCESS);
              EXPECT_EQUAL(count, size_t{3});
              EXPECT(from[0] == node[0] && to[0] == node[1] && from[2] == node[1] && to[2] == node[2]);
              EXPECT(from[3] == nullptr && to[3] == nullptr);
              count = 1;
              EXPECT_EQUAL(cuGraphNodeGetDependencies(node[2], from, nullptr, &count), CUDA_SUCCESS);
              EXPECT_EQUAL(count, size_t{1});
              EXPECT(from[0] == node[0]);
              EXPECT_EQUAL(cuGraphNodeGetDependencies(node[2], nullptr, nullptr, &count), CUDA_SUCCESS);
              EXPECT_EQUAL(count, size_t{2});
              EXPECT_EQUAL(cuGraphNodeGetDependentNodes(node[0], to, nullptr, &count), CUDA_SUCCESS);
              EXPECT_EQUAL(count, size_t{2});
              EXPECT(to[0] == node[1] && to[1] == node[2]);
              EXPECT_EQUAL(cuGraphGetRootNodes(letters.graph, nullptr, &count), CUDA_SUCCESS);
              EXPECT_EQUAL(count, size_t{1});
              EXPECT_EQUAL(cuGraphDestroyNode(node[0]), CUDA_SUCCESS);  // its edges end with it
              EXPECT_EQUAL(letters.edges(), size_t{1});
              EXPECT_EQUAL(letters.run(report), std::string("bc"));
          }) == "");
}

TEST_CASE("an edge with data is told to those alone who ask for data, and leads from kernels alone") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              CUgraph graph = nullptr;
              EXPECT_EQUAL(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
              const CUgraphNode first = add_kernel(report, graph), second = add_kernel(report, graph);
              CUgraphEdgeData early{}, told{};
              early.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
              early.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
              CUgraphNode from = nullptr, to = nullptr, empty = nullptr;
              size_t count = 1;
              EXPECT_EQUAL(cuGraphAddDependencies_v2(graph, &first, &second, &early, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphGetEdges_v2(graph, &from, &to, nullptr, &count), CUDA_ERROR_LOSSY_QUERY);
              EXPECT_EQUAL(cuGraphNodeGetDependencies_v2(second, &from, nullptr, &count), CUDA_ERROR_LOSSY_QUERY);
              EXPECT_EQUAL(cuGraphGetEdges_v2(graph, &from, &to, &told, &count), CUDA_SUCCESS);
              EXPECT(from == first && to == second && told.type == early.type && told.from_port == early.from_port);
              // Without its data it isn't that edge.
              EXPECT_EQUAL(cuGraphRemoveDependencies_v2(graph, &first, &second, nullptr, 1), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuGraphRemoveDependencies_v2(graph, &first, &second, &early, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddEmptyNode(&empty, graph, nullptr, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddDependencies_v2(graph, &empty, &second, &early, 1), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}

TEST_CASE("a copy of a graph has its edges, and its nodes are found by those that they copy") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              Letters letters(report);
              CUgraph clone = nullptr;
              CUgraphNode copy = nullptr, before = nullptr;
              size_t count = 1;
              EXPECT_EQUAL(letters.edge(2, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphClone(&clone, letters.graph), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphNodeFindInClone(&copy, letters.node[0], letters.graph), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuGraphNodeFindInClone(&copy, letters.node[0], clone), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphNodeGetDependencies(copy, &before, nullptr, &count), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphNodeFindInClone(&copy, letters.node[2], clone), CUDA_SUCCESS);
              EXPECT(before == copy && copy != letters.node[2]);
              letters.graph = clone;
              EXPECT_EQUAL(letters.run(report), std::string("bca"));
          }) == "");
}

TEST_CASE("a graph with nodes of memory keeps its edges") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              Letters letters(report);
              CUDA_MEM_ALLOC_NODE_PARAMS memory{};
              memory.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
              memory.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
              memory.bytesize = 512;
              CUgraphNode node = nullptr;
              EXPECT_EQUAL(letters.edge(0, 1), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphAddMemAllocNode(&node, letters.graph, &letters.node[1], 1, &memory), CUDA_SUCCESS);
              EXPECT_EQUAL(letters.edges(), size_t{2});
              EXPECT_EQUAL(letters.no_edge(0, 1), CUDA_ERROR_NOT_SUPPORTED);
              EXPECT_EQUAL(letters.edges(), size_t{2});
          }) == "");
}
