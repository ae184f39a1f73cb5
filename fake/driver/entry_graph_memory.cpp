// SPDX-License-Identifier: Apache-2.0
// Graphs' memory: allocation and free nodes, and what a device keeps for them.

#include <cstring>

#include "fake/driver/api_prologue.h"
#include "fake/driver/graph_memory.h"
#include "fake/driver/state.h"

using namespace cuslice::fake;

namespace {

uint64_t* attribute_of(GraphPool& pool, CUgraphMem_attribute attribute) {
    switch (attribute) {
        case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
            return &pool.used;
        case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
            return &pool.used_high;
        case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
            return &pool.reserved;
        case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
            return &pool.reserved_high;
        default:
            return nullptr;
    }
}

const GraphNode* memory_node(CUgraphNode handle, CUgraphNodeType type) {
    const GraphNode* node = graph_nodes.find(handle);
    return node != nullptr && node->work.type == type && node->memory != nullptr ? node : nullptr;
}

/// Documented: a child graph gets no nodes of memory. With which error is not.
CUresult find_place(CUgraph graph, const GivenDependencies& given, Dependencies& after) {
    CUSLICE_TRY(take_dependencies(graph, given, after));
    const Graph& place = *graphs.find(graph);
    return place.is_child && place.around == nullptr ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

}  // namespace

namespace cuslice::fake {

CUresult add_allocation(CUgraph graph, const GivenDependencies& given, CUDA_MEM_ALLOC_NODE_PARAMS* params,
                        CUgraphNode* out) {
    if (out == nullptr || params == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    Dependencies after;
    CUSLICE_TRY(find_place(graph, given, after));
    const CUmemPoolProps& props = params->poolProps;
    const bool managed = props.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED;
    if (params->bytesize == 0 || (props.allocType != CU_MEM_ALLOCATION_TYPE_PINNED && !managed) ||
        props.handleTypes != CU_MEM_HANDLE_TYPE_NONE)
        return CUDA_ERROR_INVALID_VALUE;
    if (managed || props.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        CUSLICE_UNSUPPORTED("graph memory that is not on a device");
    CUSLICE_FIND(Gpu, gpu, find_gpu(props.location.id, gpu));
    if (params->accessDescCount > driver().gpus.size() ||
        (params->accessDescCount > 0 && params->accessDescs == nullptr))
        return CUDA_ERROR_INVALID_VALUE;
    const DriverLock hold;
    return add_memory_node(graph, after, *gpu, params->bytesize, params->dptr, *out);
}

CUresult add_free(CUgraph graph, const GivenDependencies& given, CUdeviceptr address, CUgraphNode* out) {
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    Dependencies after;
    CUSLICE_TRY(find_place(graph, given, after));
    const DriverLock hold;
    return add_free_node(graph, after, address, *out);
}

}  // namespace cuslice::fake

CUSLICE_ENTRY(cuGraphAddMemAllocNode, out, graph, dependencies, count, params) {
    return add_allocation(graph, {dependencies, nullptr, count}, params, out);
}

CUSLICE_ENTRY(cuGraphAddMemFreeNode, out, graph, dependencies, count, address) {
    return add_free(graph, {dependencies, nullptr, count}, address, out);
}

CUSLICE_ENTRY(cuGraphMemAllocNodeGetParams, handle, out) {
    const GraphNode* node = memory_node(handle, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    if (out == nullptr || node == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    *out = {};
    out->poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    out->poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, node->memory->gpu->ordinal};
    out->bytesize = node->memory->asked;
    out->dptr = node->memory->at;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuGraphMemFreeNodeGetParams, handle, out) {
    const GraphNode* node = memory_node(handle, CU_GRAPH_NODE_TYPE_MEM_FREE);
    if (out == nullptr || node == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    *out = node->memory->at;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuDeviceGraphMemTrim, device) {
    CUSLICE_FIND(Gpu, gpu, find_gpu(device, gpu));
    const DriverLock hold;
    trim_graph_pool(*gpu);
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuDeviceGetGraphMemAttribute, device, attribute, value) {
    CUSLICE_FIND(const Gpu, gpu, find_gpu(device, gpu));
    const DriverLock hold;
    const uint64_t* figure = attribute_of(graph_pool(*gpu), attribute);
    if (value == nullptr || figure == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(value, figure, sizeof *figure);
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuDeviceSetGraphMemAttribute, device, attribute, value) {
    CUSLICE_FIND(const Gpu, gpu, find_gpu(device, gpu));
    if (value == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t wanted = 0;
    std::memcpy(&wanted, value, sizeof wanted);
    const DriverLock hold;
    GraphPool& pool = graph_pool(*gpu);
    const bool used = attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH;
    // A high mark can only be set back.
    if (wanted != 0 || (!used && attribute != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH))
        return CUDA_ERROR_INVALID_VALUE;
    (used ? pool.used_high : pool.reserved_high) = used ? pool.used : pool.reserved;
    return CUDA_SUCCESS;
}
