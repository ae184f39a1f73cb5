// SPDX-License-Identifier: Apache-2.0
// Graph nodes that allocate, and on which GPU they are said to do so.
#include "shim/runtime/graphs.h"

#include "tests/catch.h"
#include "tests/shim/runtime/made_up_runtime.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

void* const kBlock = reinterpret_cast<void*>(uintptr_t{0x4711});

// The runtime's, which puts the address into what it is given.
cudaError_t add_alloc_node(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t count,
                           cudaMemAllocNodeParams* wish) {
    made_up().note(in_words("added", count, static_cast<const cudaMemAllocNodeParams*>(wish)));
    if (wish)
        wish->dptr = kBlock;
    return made_up().runtime_says;
}
cudaError_t put_params(cudaGraphNode_t, cudaMemAllocNodeParams* params) {
    params->poolProps.location = {made_up().runtime_device < 0 ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice,
                                  made_up().runtime_device};
    return made_up().runtime_says;
}
cudaError_t add_node(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, const cudaGraphEdgeData*, size_t count,
                     cudaGraphNodeParams* what) {
    made_up().note(in_words("added", count, static_cast<const cudaGraphNodeParams*>(what)));
    if (what)
        what->alloc.dptr = kBlock;
    return made_up().runtime_says;
}
cudaError_t add_node_12(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                        cudaGraphNodeParams* what) {
    return add_node(node, graph, after, nullptr, count, what);
}

}  // namespace

TEST_CASE("a node that allocates is of the physical GPU for the runtime, and the program's wish stays as it is") {
    MadeUpRuntime runtime;
    runtime.put(runtime::Id::cudaGraphAddMemAllocNode, &add_alloc_node);
    cudaMemAllocNodeParams wish{};
    wish.poolProps.location = on_gpu(3);
    const auto add = [&](cudaMemAllocNodeParams* one) {
        return ASK(cudaGraphAddMemAllocNode, nullptr, nullptr, nullptr, size_t{7}, one);
    };
    CHECK(add(&wish) == "added 7 gpu1");
    CHECK(wish.dptr == kBlock);
    CHECK(wish.poolProps.location.id == 3);
    // A refusal tells no address.
    wish.dptr = nullptr;
    runtime.runtime_says = cudaErrorInvalidValue;
    add(&wish);
    CHECK(runtime.result == cudaErrorInvalidValue);
    CHECK(wish.dptr == nullptr);
    CHECK(add(nullptr) == "added 7 0");
    runtime.split = false;
    CHECK(add(&wish) == "added 7 gpu3");
}

TEST_CASE("a node's parameters name the part") {
    MadeUpRuntime runtime;
    runtime.put(runtime::Id::cudaGraphMemAllocNodeGetParams, &put_params);
    cudaMemAllocNodeParams params{};
    ASK(cudaGraphMemAllocNodeGetParams, nullptr, &params);
    CHECK(params.poolProps.location.id == 2);
    runtime.current = 3;
    ASK(cudaGraphMemAllocNodeGetParams, nullptr, &params);
    CHECK(params.poolProps.location.id == 3);
    runtime.runtime_says = cudaErrorInvalidValue;
    ASK(cudaGraphMemAllocNodeGetParams, nullptr, &params);
    CHECK(params.poolProps.location.id == 1);
    runtime.runtime_says = cudaSuccess;
    runtime.runtime_device = -5;  // on the host
    ASK(cudaGraphMemAllocNodeGetParams, nullptr, &params);
    CHECK(params.poolProps.location.id == -5);
    runtime.split = false;
    runtime.runtime_device = 1;
    ASK(cudaGraphMemAllocNodeGetParams, nullptr, &params);
    CHECK(params.poolProps.location.id == 1);
}

TEST_CASE("so is a node of any kind that is added with its parameters") {
    MadeUpRuntime runtime;
    runtime.put(runtime::Id::cudaGraphAddNode, &add_node);
    runtime.put(runtime::Id::cudaGraphAddNode_v2, &add_node);
    cudaGraphNodeParams node{};
    node.type = cudaGraphNodeTypeMemAlloc;
    node.alloc.poolProps.location = on_gpu(3);
    const auto add = [&](cudaGraphNodeParams* one) {
        return ASK_FORM(cudaGraphAddNode, 13, nullptr, nullptr, nullptr, nullptr, size_t{7}, one);
    };
    CHECK(add(&node) == "added 7 gpu1");
    CHECK(node.alloc.dptr == kBlock);
    CHECK(node.alloc.poolProps.location.id == 3);
    CHECK(ASK_12(cudaGraphAddNode_v2, nullptr, nullptr, nullptr, nullptr, size_t{7}, &node) == "added 7 gpu1");
    runtime.put(runtime::Id::cudaGraphAddNode, &add_node_12);
    CHECK(ASK_FORM(cudaGraphAddNode, 12, nullptr, nullptr, nullptr, size_t{7}, &node) == "added 7 gpu1");
    runtime.put(runtime::Id::cudaGraphAddNode, &add_node);

    node.alloc.dptr = nullptr;
    runtime.runtime_says = cudaErrorInvalidValue;
    add(&node);
    CHECK(runtime.result == cudaErrorInvalidValue);
    CHECK(node.alloc.dptr == nullptr);
    runtime.runtime_says = cudaSuccess;
    // Parameters without a location, and null ones, are passed on unchanged.
    node.type = cudaGraphNodeTypeKernel;
    CHECK(add(&node) == "added 7 gpu3");
    CHECK(add(nullptr) == "added 7 0");
    node.type = cudaGraphNodeTypeMemAlloc;
    runtime.split = false;
    CHECK(add(&node) == "added 7 gpu3");
}
