// SPDX-License-Identifier: Apache-2.0
// Graph nodes that name a context, or a place for memory.
#include "virtual_gpu/split/access.h"
#include "virtual_gpu/split/current_context.h"
#include "virtual_gpu/split/functions.h"
#include "virtual_gpu/split/handle_registry.h"
#include "virtual_gpu/split/translate.h"

namespace cuslice {

namespace {

// Translates what a node names into what the driver knows. False if there is no such thing.
bool translate(CUDA_KERNEL_NODE_PARAMS_v2& node) { return node.func || to_real(node.ctx); }
bool translate(CUDA_BATCH_MEM_OP_NODE_PARAMS& node) { return to_real(node.ctx); }

bool translate(CUgraphNodeParams& node) {
    switch (node.type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            return node.kernel.func || to_real(node.kernel.ctx);
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            return to_real(node.memcpy.copyCtx);
        case CU_GRAPH_NODE_TYPE_MEMSET:
            return to_real(node.memset.ctx);
        case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
            return to_real(node.memOp.ctx);
        case CU_GRAPH_NODE_TYPE_CONDITIONAL:
            return to_real(node.conditional.ctx);
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
            to_physical(node.alloc.poolProps.location);
            return true;
        default:
            return true;
    }
}

template <typename Params>
void use(PhysicalAccess& access, Params& wish) {
    if (!wish.accessDescs)
        return;
    wish.accessDescs = access.get();
    wish.accessDescCount = access.size();
}

// Notes the virtual GPU that a node's memory is for.
void remember(CUgraphNode node, const CUmemLocation& location) {
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE && split().device(location.id))
        handle_registry().add(node, HandleKind::node, location.id, 0);
}

template <typename Node, typename Call>
CUresult with_node(const Node* node, Call call) {
    if (!node)
        return call(node);
    Node real = *node;
    return translate(real) ? call(&real) : CUDA_ERROR_INVALID_VALUE;
}

// The driver writes into these what it has made: everything but what was exchanged is the program's to see.
template <typename Call>
CUresult with_node_written(CUgraphNodeParams* node, Call call) {
    if (!node)
        return call(node);
    CUgraphNodeParams real = *node;
    if (!translate(real))
        return CUDA_ERROR_INVALID_VALUE;
    const bool allocates = real.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    PhysicalAccess access(allocates ? real.alloc.accessDescs : nullptr, allocates ? real.alloc.accessDescCount : 0);
    if (!access.complete())
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (allocates)
        use(access, real.alloc);
    const CUresult result = call(&real);
    if (result != CUDA_SUCCESS)
        return result;
    if (real.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        node->alloc.dptr = real.alloc.dptr;
    if (real.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        node->conditional.phGraph_out = real.conditional.phGraph_out;
    return result;
}

template <typename Call>
CUresult with_node_added(const CUgraphNode* node, CUgraphNodeParams* what, Call call) {
    const CUresult result = with_node_written(what, call);
    if (result == CUDA_SUCCESS && what->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        remember(*node, what->alloc.poolProps.location);
    return result;
}

constexpr auto add_node = [](auto call, CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
                             const auto* params) {
    return with_node(params, [&](const auto* real) { return call(node, graph, after, count, real); });
};
constexpr auto get_node = [](auto call, CUgraphNode node, auto* params) {
    const CUresult result = call(node, params);
    if (result == CUDA_SUCCESS)
        params->ctx = to_virtual(params->ctx);
    return result;
};
constexpr auto set_node = [](auto call, CUgraphNode node, const auto* params) {
    return with_node(params, [&](const auto* real) { return call(node, real); });
};
constexpr auto set_exec_node = [](auto call, CUgraphExec graph, CUgraphNode node, const auto* params) {
    return with_node(params, [&](const auto* real) { return call(graph, node, real); });
};

}  // namespace

namespace split_driver {

CUSLICE_SPLIT_FORM(cuGraphAddKernelNode_v2, add_node, node, graph, after, count, kernel)
CUSLICE_SPLIT_FORM(cuGraphKernelNodeGetParams_v2, get_node, node, kernel)
CUSLICE_SPLIT_FORM(cuGraphKernelNodeSetParams_v2, set_node, node, kernel)
CUSLICE_SPLIT_FORM(cuGraphExecKernelNodeSetParams_v2, set_exec_node, graph, node, kernel)
CUSLICE_SPLIT_FORM(cuGraphAddBatchMemOpNode, add_node, node, graph, after, count, batch)
CUSLICE_SPLIT_FORM(cuGraphBatchMemOpNodeGetParams, get_node, node, batch)
CUSLICE_SPLIT_FORM(cuGraphBatchMemOpNodeSetParams, set_node, node, batch)
CUSLICE_SPLIT_FORM(cuGraphExecBatchMemOpNodeSetParams, set_exec_node, graph, node, batch)

CUSLICE_SPLIT(cuGraphAddMemAllocNode, node, graph, after, count, wish) {
    if (!wish)
        return CUSLICE_PHYSICAL(cuGraphAddMemAllocNode)(node, graph, after, count, wish);
    CUDA_MEM_ALLOC_NODE_PARAMS real = *wish;
    PhysicalAccess access(real.accessDescs, real.accessDescCount);
    if (!access.complete())
        return CUDA_ERROR_OUT_OF_MEMORY;
    to_physical(real.poolProps.location);
    use(access, real);
    const CUresult result = CUSLICE_PHYSICAL(cuGraphAddMemAllocNode)(node, graph, after, count, &real);
    if (result != CUDA_SUCCESS)
        return result;
    wish->dptr = real.dptr;
    remember(*node, wish->poolProps.location);
    return result;
}

CUSLICE_SPLIT(cuGraphMemAllocNodeGetParams, node, wish) {
    const CUresult result = CUSLICE_PHYSICAL(cuGraphMemAllocNodeGetParams)(node, wish);
    if (result != CUDA_SUCCESS || wish->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return result;
    const HandleOwner owner = handle_registry().find(node, HandleKind::node);
    wish->poolProps.location.id = owner.known ? owner.device : to_virtual(wish->poolProps.location.id);
    return result;
}

CUSLICE_SPLIT(cuGraphAddNode, node, graph, after, count, what) {
    return with_node_added(node, what, [&](CUgraphNodeParams* real) {
        return CUSLICE_PHYSICAL(cuGraphAddNode)(node, graph, after, count, real);
    });
}

CUSLICE_SPLIT(cuGraphAddNode_v2, node, graph, after, edges, count, what) {
    return with_node_added(node, what, [&](CUgraphNodeParams* real) {
        return CUSLICE_PHYSICAL(cuGraphAddNode_v2)(node, graph, after, edges, count, real);
    });
}

CUSLICE_SPLIT(cuGraphNodeSetParams, node, what) {
    return with_node_written(
        what, [&](CUgraphNodeParams* real) { return CUSLICE_PHYSICAL(cuGraphNodeSetParams)(node, real); });
}

CUSLICE_SPLIT(cuGraphExecNodeSetParams, graph, node, what) {
    return with_node_written(
        what, [&](CUgraphNodeParams* real) { return CUSLICE_PHYSICAL(cuGraphExecNodeSetParams)(graph, node, real); });
}

}  // namespace split_driver

}  // namespace cuslice
