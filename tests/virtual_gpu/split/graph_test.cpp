// SPDX-License-Identifier: Apache-2.0
// Graph nodes that name a context or a place: what the driver is given, and what the program is shown.
#include "tests/no_memory.h"
#include "tests/virtual_gpu/split/split_scene.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

constexpr auto kDevice = CU_MEM_LOCATION_TYPE_DEVICE;
constexpr CUdeviceptr kAddress = 0x7f0000000000;

CUgraphNode node(uintptr_t number) { return tests::handle<CUgraphNode>(0x9000 + number); }

/// Parameters that the driver was given last, the number of its calls, and its answer.
CUgraphNodeParams given{};
std::vector<CUmemAccessDesc> given_access;
unsigned asked = 0;
CUresult answer = CUDA_SUCCESS;

CUresult take(CUgraphNodeParams* params) {
    asked++;
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    given = *params;
    given_access.clear();
    if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
        const CUDA_MEM_ALLOC_NODE_PARAMS_v2& wish = params->alloc;
        if (wish.accessDescs)
            given_access.assign(wish.accessDescs, wish.accessDescs + wish.accessDescCount);
        params->alloc.dptr = kAddress;
    }
    if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        params->conditional.phGraph_out = tests::handle<CUgraph*>(0x123);
    return answer;
}

CUresult add_node(CUgraphNode* into, CUgraph, const CUgraphNode*, const CUgraphEdgeData*, size_t,
                  CUgraphNodeParams* params) {
    *into = node(1);
    return take(params);
}

struct Scene : SplitScene {
    Scene() {
        asked = 0;
        answer = CUDA_SUCCESS;
        given = {};
        driver.put(
            Function::cuGraphAddNode,
            +[](CUgraphNode* into, CUgraph, const CUgraphNode*, size_t, CUgraphNodeParams* params) -> CUresult {
                *into = node(1);
                return take(params);
            });
        driver.put(Function::cuGraphAddNode_v2, add_node);
        driver.put(
            Function::cuGraphNodeSetParams,
            +[](CUgraphNode, CUgraphNodeParams* params) -> CUresult { return take(params); });
        driver.put(
            Function::cuGraphExecNodeSetParams,
            +[](CUgraphExec, CUgraphNode, CUgraphNodeParams* params) -> CUresult { return take(params); });
        driver.put(
            Function::cuGraphAddMemAllocNode,
            +[](CUgraphNode* into, CUgraph, const CUgraphNode*, size_t,
                CUDA_MEM_ALLOC_NODE_PARAMS* params) -> CUresult {
                asked++;
                if (!params)
                    return CUDA_ERROR_INVALID_VALUE;
                *into = node(1);
                given.alloc.poolProps = params->poolProps;
                given_access.clear();
                if (params->accessDescs)
                    given_access.assign(params->accessDescs, params->accessDescs + params->accessDescCount);
                params->dptr = kAddress;
                return answer;
            });
        driver.put(
            Function::cuGraphMemAllocNodeGetParams, +[](CUgraphNode, CUDA_MEM_ALLOC_NODE_PARAMS* params) -> CUresult {
                params->poolProps = given.alloc.poolProps;
                return answer;
            });
        driver.put(
            Function::cuGraphAddKernelNode_v2,
            +[](CUgraphNode*, CUgraph, const CUgraphNode*, size_t, const CUDA_KERNEL_NODE_PARAMS* params) -> CUresult {
                asked++;
                if (!params)
                    return CUDA_ERROR_INVALID_VALUE;
                given.kernel.ctx = params->ctx;
                return answer;
            });
        driver.put(
            Function::cuGraphKernelNodeGetParams_v2, +[](CUgraphNode, CUDA_KERNEL_NODE_PARAMS* params) -> CUresult {
                params->ctx = real_of(0);
                return answer;
            });
    }
    ~Scene() { handle_registry().remove(node(1), HandleKind::node); }

    /// By each of the functions that take a node's parameters.
    template <typename Use>
    static void by_each(Use use) {
        CUgraphNode into = nullptr;
        use([&](CUgraphNodeParams* params) {
            return split_driver::cuGraphAddNode(&into, nullptr, nullptr, 0, params);
        });
        use([&](CUgraphNodeParams* params) {
            return split_driver::cuGraphAddNode_v2(&into, nullptr, nullptr, nullptr, 0, params);
        });
        use([](CUgraphNodeParams* params) { return split_driver::cuGraphNodeSetParams(node(1), params); });
        use([](CUgraphNodeParams* params) { return split_driver::cuGraphExecNodeSetParams(nullptr, node(1), params); });
    }
};

CUmemAccessDesc access(int device, CUmemAccess_flags flags) {
    CUmemAccessDesc made{};
    made.location = {kDevice, device};
    made.flags = flags;
    return made;
}

}  // namespace

TEST_CASE("a node that allocates names its physical GPU and who may reach it, and the program's wish is as it was") {
    Scene scene;
    std::vector<CUmemAccessDesc> wishes{access(1, CU_MEM_ACCESS_FLAGS_PROT_READ),
                                        access(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
                                        access(2, CU_MEM_ACCESS_FLAGS_PROT_READ)};
    scene.by_each([&](auto call) {
        CUgraphNodeParams wish{};
        wish.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
        wish.alloc.poolProps.location = {kDevice, 2};
        wish.alloc.accessDescs = wishes.data();
        wish.alloc.accessDescCount = wishes.size();
        REQUIRE(call(&wish) == CUDA_SUCCESS);
        CHECK(given.alloc.poolProps.location.id == 1);
        REQUIRE(given_access.size() == 2);
        CHECK(given_access[0].location.id == 0);
        CHECK(given_access[0].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        CHECK(given_access[1].location.id == 1);
        CHECK(wish.alloc.dptr == kAddress);
        CHECK(wish.alloc.poolProps.location.id == 2);
        CHECK(wish.alloc.accessDescs == wishes.data());
        CHECK(wish.alloc.accessDescCount == wishes.size());
        wish.alloc.accessDescs = nullptr;
        REQUIRE(call(&wish) == CUDA_SUCCESS);
        CHECK(given_access.empty());
        CHECK(call(nullptr) == CUDA_ERROR_INVALID_VALUE);
    });
    CHECK(wishes[0].location.id == 1);
}

TEST_CASE("a node that the driver refuses, or that there is no memory to translate, writes nothing and is nobody's") {
    Scene scene;
    const std::vector<CUmemAccessDesc> wishes{access(1, CU_MEM_ACCESS_FLAGS_PROT_READ)};
    CUgraphNodeParams wish{};
    wish.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    wish.alloc.poolProps.location = {kDevice, 1};
    wish.alloc.accessDescs = wishes.data();
    wish.alloc.accessDescCount = wishes.size();
    scene.by_each([&](auto call) {
        answer = CUDA_ERROR_OUT_OF_MEMORY;
        CHECK(call(&wish) == CUDA_ERROR_OUT_OF_MEMORY);
        CHECK(wish.alloc.dptr == 0);
        answer = CUDA_SUCCESS;
        asked = 0;
        {
            const NoMemory none;
            CHECK(call(&wish) == CUDA_ERROR_OUT_OF_MEMORY);
        }
        CHECK(asked == 0);
        CHECK(wish.alloc.dptr == 0);
    });
    CHECK_FALSE(handle_registry().find(node(1), HandleKind::node).known);
}

TEST_CASE("a node that names a context names the real one, and one that has ended is refused") {
    Scene scene;
    const CUcontext lives = scene.create(1), ended = scene.create(2);
    REQUIRE(split_driver::cuCtxDestroy_v2(ended) == CUDA_SUCCESS);
    const auto check = [&](CUgraphNodeType type, auto member) {
        CAPTURE(type);
        scene.by_each([&](auto call) {
            CUgraphNodeParams wish{};
            wish.type = type;
            member(wish) = lives;
            asked = 0;
            REQUIRE(call(&wish) == CUDA_SUCCESS);
            CHECK(member(given) == real_of(0));
            CHECK(member(wish) == lives);
            member(wish) = ended;
            CHECK(call(&wish) == CUDA_ERROR_INVALID_VALUE);
            CHECK(asked == 1);
        });
    };
    check(CU_GRAPH_NODE_TYPE_KERNEL, [](CUgraphNodeParams& node) -> CUcontext& { return node.kernel.ctx; });
    check(CU_GRAPH_NODE_TYPE_MEMCPY, [](CUgraphNodeParams& node) -> CUcontext& { return node.memcpy.copyCtx; });
    check(CU_GRAPH_NODE_TYPE_MEMSET, [](CUgraphNodeParams& node) -> CUcontext& { return node.memset.ctx; });
    check(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, [](CUgraphNodeParams& node) -> CUcontext& { return node.memOp.ctx; });
    check(CU_GRAPH_NODE_TYPE_CONDITIONAL, [](CUgraphNodeParams& node) -> CUcontext& { return node.conditional.ctx; });
}

TEST_CASE("a kernel node that has a function needs no context, and what a conditional one makes is written back") {
    Scene scene;
    const CUcontext ended = scene.create(2);
    REQUIRE(split_driver::cuCtxDestroy_v2(ended) == CUDA_SUCCESS);
    scene.by_each([&](auto call) {
        CUgraphNodeParams wish{};
        wish.type = CU_GRAPH_NODE_TYPE_KERNEL;
        wish.kernel.func = tests::handle<CUfunction>(1);
        wish.kernel.ctx = ended;  // not looked at
        CHECK(call(&wish) == CUDA_SUCCESS);
        wish = {};
        wish.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
        CHECK(call(&wish) == CUDA_SUCCESS);
        CHECK(wish.conditional.phGraph_out == tests::handle<CUgraph*>(0x123));
        wish = {};
        wish.type = CU_GRAPH_NODE_TYPE_EMPTY;
        CHECK(call(&wish) == CUDA_SUCCESS);
        CHECK(given.type == CU_GRAPH_NODE_TYPE_EMPTY);
    });
    CUgraphNode into = nullptr;
    CUDA_KERNEL_NODE_PARAMS kernel{};
    kernel.ctx = ended;
    CHECK(split_driver::cuGraphAddKernelNode_v2(&into, nullptr, nullptr, 0, &kernel) == CUDA_ERROR_INVALID_VALUE);
    kernel.func = tests::handle<CUfunction>(1);
    CHECK(split_driver::cuGraphAddKernelNode_v2(&into, nullptr, nullptr, 0, &kernel) == CUDA_SUCCESS);
    CHECK(split_driver::cuGraphAddKernelNode_v2(&into, nullptr, nullptr, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a node's memory is shown on the virtual GPU that it was wished on") {
    Scene scene;
    const std::vector<CUmemAccessDesc> wishes{access(1, CU_MEM_ACCESS_FLAGS_PROT_READ),
                                              access(0, CU_MEM_ACCESS_FLAGS_PROT_READ)};
    CUDA_MEM_ALLOC_NODE_PARAMS wish{}, shown{};
    wish.poolProps.location = {kDevice, 1};
    wish.accessDescs = wishes.data();
    wish.accessDescCount = wishes.size();
    CUgraphNode into = nullptr;
    const auto add = [&] { return split_driver::cuGraphAddMemAllocNode(&into, nullptr, nullptr, 0, &wish); };
    {
        const NoMemory none;
        asked = 0;
        CHECK(add() == CUDA_ERROR_OUT_OF_MEMORY);
        CHECK(asked == 0);
    }
    answer = CUDA_ERROR_OUT_OF_MEMORY;
    CHECK(add() == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(wish.dptr == 0);
    CHECK_FALSE(handle_registry().find(node(1), HandleKind::node).known);
    answer = CUDA_SUCCESS;
    REQUIRE(add() == CUDA_SUCCESS);
    CHECK(wish.dptr == kAddress);
    CHECK(wish.poolProps.location.id == 1);
    CHECK(given.alloc.poolProps.location.id == 0);
    CHECK(given_access.size() == 1);
    REQUIRE(split_driver::cuGraphMemAllocNodeGetParams(node(1), &shown) == CUDA_SUCCESS);
    CHECK(shown.poolProps.location.id == 1);
    // One that others have added is the first part's.
    handle_registry().remove(node(1), HandleKind::node);
    REQUIRE(split_driver::cuGraphMemAllocNodeGetParams(node(1), &shown) == CUDA_SUCCESS);
    CHECK(shown.poolProps.location.id == 0);
    given.alloc.poolProps.location = {CU_MEM_LOCATION_TYPE_HOST, 5};
    REQUIRE(split_driver::cuGraphMemAllocNodeGetParams(node(1), &shown) == CUDA_SUCCESS);
    CHECK(shown.poolProps.location.id == 5);
    CHECK(split_driver::cuGraphAddMemAllocNode(&into, nullptr, nullptr, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);

    CUgraphNodeParams other{};
    other.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    other.alloc.poolProps.location = {kDevice, 1};
    REQUIRE(split_driver::cuGraphAddNode(&into, nullptr, nullptr, 0, &other) == CUDA_SUCCESS);
    CHECK(handle_registry().find(node(1), HandleKind::node).device == 1);
}

TEST_CASE("a node's context is shown as the virtual one that is current, and only where the driver answers") {
    Scene scene;
    CUDA_KERNEL_NODE_PARAMS shown{};
    const CUcontext mine = scene.create(1);
    REQUIRE(split_driver::cuGraphKernelNodeGetParams_v2(node(1), &shown) == CUDA_SUCCESS);
    CHECK(shown.ctx == mine);
    answer = CUDA_ERROR_INVALID_VALUE;
    CHECK(split_driver::cuGraphKernelNodeGetParams_v2(node(1), &shown) == CUDA_ERROR_INVALID_VALUE);
    CHECK(shown.ctx == real_of(0));
}
