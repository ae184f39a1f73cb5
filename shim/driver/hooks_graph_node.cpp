// SPDX-License-Identifier: Apache-2.0
// Nodes of graphs that copy and fill: checked when they are given their parameters. (A launch has none, and a node may
// well stay where it is when its memory is freed.)
#include "shim/driver/bounds.h"

namespace cuslice {

namespace {

template <typename Params>
bool fill_in_bounds(const Params* params) {
    return !params || rows_in_bounds(params->dst, params->pitch, params->width, params->elementSize, params->height);
}

bool node_in_bounds(const CUgraphNodeParams* params) {
    if (!params)
        return true;
    if (params->type == CU_GRAPH_NODE_TYPE_MEMCPY)
        return box_in_bounds(&params->memcpy.copyParams);
    if (params->type == CU_GRAPH_NODE_TYPE_MEMSET)
        return fill_in_bounds(&params->memset);
    return true;
}

using Dependencies = const CUgraphNode*;

constexpr auto added_copy = [](CUgraphNode*, CUgraph, Dependencies, size_t, const CUDA_MEMCPY3D* params, CUcontext) {
    return box_in_bounds(params);
};
constexpr auto set_copy = [](CUgraphNode, const CUDA_MEMCPY3D* params) { return box_in_bounds(params); };
constexpr auto set_exec_copy = [](CUgraphExec, CUgraphNode, const CUDA_MEMCPY3D* params, CUcontext) {
    return box_in_bounds(params);
};

constexpr auto added_fill = [](CUgraphNode*, CUgraph, Dependencies, size_t, const CUDA_MEMSET_NODE_PARAMS* params,
                               CUcontext) { return fill_in_bounds(params); };
constexpr auto set_fill = [](CUgraphNode, const CUDA_MEMSET_NODE_PARAMS* params) { return fill_in_bounds(params); };
constexpr auto set_exec_fill = [](CUgraphExec, CUgraphNode, const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
    return fill_in_bounds(params);
};

constexpr auto added_v1 = [](CUgraphNode*, CUgraph, Dependencies, size_t, CUgraphNodeParams* params) {
    return node_in_bounds(params);
};
constexpr auto added = [](CUgraphNode*, CUgraph, Dependencies, const CUgraphEdgeData*, size_t,
                          CUgraphNodeParams* params) { return node_in_bounds(params); };
constexpr auto set = [](CUgraphNode, CUgraphNodeParams* params) { return node_in_bounds(params); };
constexpr auto set_exec = [](CUgraphExec, CUgraphNode, CUgraphNodeParams* params) { return node_in_bounds(params); };

}  // namespace

CUSLICE_CHECKED(cuGraphAddMemcpyNode, added_copy)
CUSLICE_CHECKED(cuGraphMemcpyNodeSetParams, set_copy)
CUSLICE_CHECKED(cuGraphExecMemcpyNodeSetParams, set_exec_copy)
CUSLICE_CHECKED(cuGraphAddMemsetNode, added_fill)
CUSLICE_CHECKED(cuGraphMemsetNodeSetParams, set_fill)
CUSLICE_CHECKED(cuGraphExecMemsetNodeSetParams, set_exec_fill)
CUSLICE_CHECKED(cuGraphAddNode, added_v1)
CUSLICE_CHECKED(cuGraphAddNode_v2, added)
CUSLICE_CHECKED(cuGraphNodeSetParams, set)
CUSLICE_CHECKED(cuGraphExecNodeSetParams, set_exec)

}  // namespace cuslice
