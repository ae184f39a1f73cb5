// Nodes that a program adds to a graph one by one. They run in the order in which they are added, in which each comes
// after what it depends on.

#include <algorithm>
#include <cstring>

#include "fake/driver/api_prologue.h"
#include "fake/driver/box.h"
#include "fake/driver/module.h"
#include "fake/driver/skipped_kernels.h"

using namespace cuslice::fake;

namespace {

/// Where a node goes: its graph, what it depends on, and what its handle is written to.
struct Place {
    CUgraphNode* out;
    CUgraph graph;
    const CUgraphNode* dependencies;
    std::size_t count;
};

CUresult check_place(const Place& place) {
    return place.out == nullptr ? CUDA_ERROR_INVALID_VALUE
                                : check_dependencies(place.graph, place.dependencies, place.count);
}

CUresult add(const Place& place, NodeType type, Task task) {
    append_node(place.graph, type, std::move(task));
    *place.out = graphs.find(place.graph)->nodes.back();
    return CUDA_SUCCESS;
}

CUresult add_kernel(const Place& place, const CUDA_KERNEL_NODE_PARAMS_v3& params) {
    if (const CUresult bad = check_place(place); bad != CUDA_SUCCESS) return bad;
    if (const CUresult bad = check_kernel_node(params); bad != CUDA_SUCCESS) return bad;
    return add(place, CU_GRAPH_NODE_TYPE_KERNEL, skip_kernel());
}

CUresult add_copy(const Place& place, const CUDA_MEMCPY3D& copy, CUcontext context_handle) {
    if (const CUresult bad = check_place(place); bad != CUDA_SUCCESS) return bad;
    const Context* context = live_context(context_handle);
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Box box;
    CheckedBox checked;
    checked.task = [] {};
    if (const CUresult bad = box_of(copy, context->gpu->ordinal, box); bad != CUDA_SUCCESS) return bad;
    if (!box.empty()) {
        if (const CUresult bad = check_box(box, context_handle, checked); bad != CUDA_SUCCESS) return bad;
    }
    return add(place, CU_GRAPH_NODE_TYPE_MEMCPY, std::move(checked.task));
}

CUresult add_fill(const Place& place, const CUDA_MEMSET_NODE_PARAMS_v2& params) {
    if (const CUresult bad = check_place(place); bad != CUDA_SUCCESS) return bad;
    const Context* context = live_context(params.ctx);
    const unsigned element = params.elementSize;
    if (context == nullptr || (element != 1 && element != 2 && element != 4)) return CUDA_ERROR_INVALID_VALUE;
    CheckedFill checked;
    const Fill fill{params.dst, params.pitch, params.value, element, params.width, params.height};
    const CUresult bad = check_fill(fill, params.ctx, context->gpu->ordinal, checked);
    return bad != CUDA_SUCCESS ? bad : add(place, CU_GRAPH_NODE_TYPE_MEMSET, std::move(checked.task));
}

CUresult add_host(const Place& place, CUhostFn function, void* data) {
    if (const CUresult bad = check_place(place); bad != CUDA_SUCCESS) return bad;
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return add(place, CU_GRAPH_NODE_TYPE_HOST, [function, data] { function(data); });
}

bool all_zero(const void* bytes, std::size_t size) {
    const auto* at = static_cast<const unsigned char*>(bytes);
    return std::all_of(at, at + size, [](unsigned char byte) { return byte == 0; });
}

CUresult add_any(const Place& place, const CUgraphEdgeData* edges, CUgraphNodeParams* params) {
    if (params == nullptr || params->reserved2 != 0 || !all_zero(params->reserved0, sizeof params->reserved0))
        return CUDA_ERROR_INVALID_VALUE;
    if (edges != nullptr && !all_zero(edges, place.count * sizeof *edges))
        CUSLICE_UNSUPPORTED("edges of graphs with data");
    switch (params->type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            return add_kernel(place, params->kernel);
        case CU_GRAPH_NODE_TYPE_MEMCPY: {
            const CUDA_MEMCPY_NODE_PARAMS& copy = params->memcpy;
            if (copy.flags != 0 || copy.reserved != 0) return CUDA_ERROR_INVALID_VALUE;
            return add_copy(place, copy.copyParams, copy.copyCtx);
        }
        case CU_GRAPH_NODE_TYPE_MEMSET:
            return add_fill(place, params->memset);
        case CU_GRAPH_NODE_TYPE_HOST:
            return add_host(place, params->host.fn, params->host.userData);
        case CU_GRAPH_NODE_TYPE_EMPTY:
            if (const CUresult bad = check_place(place); bad != CUDA_SUCCESS) return bad;
            return add(place, CU_GRAPH_NODE_TYPE_EMPTY, [] {});
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
            auto& alloc = reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS_v1&>(params->alloc);
            static_assert(sizeof alloc == sizeof params->alloc);
            return cuGraphAddMemAllocNode(place.out, place.graph, place.dependencies, place.count, &alloc);
        }
        case CU_GRAPH_NODE_TYPE_MEM_FREE:
            return cuGraphAddMemFreeNode(place.out, place.graph, place.dependencies, place.count, params->free.dptr);
        default:
            CUSLICE_UNSUPPORTED("cuGraphAddNode of child graphs, events, semaphores, memory operations and conditions");
    }
}

}  // namespace

CUSLICE_ENTRY(cuGraphAddKernelNode, out, graph, dependencies, count, params) {
    if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUDA_KERNEL_NODE_PARAMS_v3 newer{};
    std::memcpy(&newer, params, sizeof *params);  // later forms added members at the end
    return add_kernel({out, graph, dependencies, count}, newer);
}

CUSLICE_ENTRY(cuGraphAddKernelNode_v2, out, graph, dependencies, count, params) {
    if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUDA_KERNEL_NODE_PARAMS_v3 newer{};
    static_assert(sizeof newer == sizeof *params);
    std::memcpy(&newer, params, sizeof newer);
    return add_kernel({out, graph, dependencies, count}, newer);
}

CUSLICE_ENTRY(cuGraphAddMemcpyNode, out, graph, dependencies, count, copy, context) {
    if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return add_copy({out, graph, dependencies, count}, *copy, context);
}

CUSLICE_ENTRY(cuGraphAddMemsetNode, out, graph, dependencies, count, params, context) {
    if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return add_fill({out, graph, dependencies, count}, {params->dst, params->pitch, params->value, params->elementSize,
                                                        params->width, params->height, context});
}

CUSLICE_ENTRY(cuGraphAddHostNode, out, graph, dependencies, count, params) {
    if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return add_host({out, graph, dependencies, count}, params->fn, params->userData);
}

CUSLICE_ENTRY(cuGraphAddNode, out, graph, dependencies, count, params) {
    return add_any({out, graph, dependencies, count}, nullptr, params);
}

CUSLICE_ENTRY(cuGraphAddNode_v2, out, graph, dependencies, edges, count, params) {
    return add_any({out, graph, dependencies, count}, edges, params);
}
