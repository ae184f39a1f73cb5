// SPDX-License-Identifier: Apache-2.0
#pragma once
// Work of graph nodes, with the parameters that it was made of.

#include <cstring>
#include <memory>
#include <vector>

#include "fake/driver/cuda_api.h"
#include "fake/driver/work_queue.h"

namespace cuslice::fake {

using NodeType = CUgraphNodeType;
struct KernelInfo;

/// Parameters of a node as programs get them back.
struct NodeParameters {
    CUgraphNodeParams all{};
    bool has_arguments = true;  // false: of a kernel whose parameters can't be read

    NodeParameters() = default;
    NodeParameters(const NodeParameters&) = delete;
    NodeParameters& operator=(const NodeParameters&) = delete;
    /// Copies a kernel's arguments, which the program's memory needn't keep.
    void own_arguments(const KernelInfo& info);

  private:
    std::vector<std::vector<unsigned char>> values_;
    std::vector<void*> pointers_;  // the array that the program sees
    size_t buffer_size_ = 0;
};

struct NodeWork {
    NodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    Task task = [] {};
    std::shared_ptr<const NodeParameters> parameters = nullptr;  // null: unknown, of some captured nodes
    WorkQueue::Needs needs = {};
};

/// Work of a launch that a capture takes; its arguments have been checked.
NodeWork captured_kernel(const CUDA_KERNEL_NODE_PARAMS_v3& params, const KernelInfo& info);
/// Other work that a capture takes, whose parameters are known.
NodeWork captured_work(
    const CUgraphNodeParams& params, Task task = [] {});

/// The buffer that `extra` of a launch names; it has been checked.
std::vector<unsigned char> buffer_in(void** extra);

/// The event of a node that records one or waits for one.
CUevent event_of(const NodeWork& work);

/// False if both are of kernels, and their functions of two contexts: a node of an instance can't change it.
bool same_owner(const NodeWork& one, const NodeWork& other);

// Parameters of a node, by type.
CUgraphNodeParams node_params(const CUDA_MEMCPY3D& copy, CUcontext context);
CUgraphNodeParams node_params(const CUDA_MEMSET_NODE_PARAMS_v2& fill);
CUgraphNodeParams node_params(const CUDA_HOST_NODE_PARAMS& host);
CUgraphNodeParams node_params(NodeType record_or_wait, CUevent event);

/// A kernel's parameters in the newest form; later forms added members at the end.
template <class Older>
CUgraphNodeParams kernel_params(const Older& params) {
    CUgraphNodeParams newest{};
    newest.type = CU_GRAPH_NODE_TYPE_KERNEL;
    static_assert(sizeof params <= sizeof newest.kernel);
    std::memcpy(&newest.kernel, &params, sizeof params);
    return newest;
}

/// A fill's, whose first form has its context beside it.
inline CUgraphNodeParams fill_params(const CUDA_MEMSET_NODE_PARAMS& fill, CUcontext context) {
    return node_params({fill.dst, fill.pitch, fill.value, fill.elementSize, fill.width, fill.height, context});
}

}  // namespace cuslice::fake
