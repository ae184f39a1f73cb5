// SPDX-License-Identifier: Apache-2.0
#pragma once
// Makes the tasks of graph nodes, checked as cuGraphAdd…Node documents: for nodes that are added, and for nodes of an
// instance that are changed.

#include <cstring>

#include "fake/driver/graph.h"

namespace cuslice::fake {

CUresult make_task(const CUDA_KERNEL_NODE_PARAMS_v3& params, Task& task);
CUresult make_task(const CUDA_MEMCPY3D& copy, CUcontext context, Task& task);
CUresult make_task(const CUDA_MEMSET_NODE_PARAMS_v2& params, Task& task);
CUresult make_task(CUhostFn function, void* data, Task& task);

/// The newest form of a kernel's parameters; later forms added members at the end.
template <class Older>
CUDA_KERNEL_NODE_PARAMS_v3 newest(const Older& params) {
    CUDA_KERNEL_NODE_PARAMS_v3 newer{};
    static_assert(sizeof params <= sizeof newer);
    std::memcpy(&newer, &params, sizeof params);
    return newer;
}

/// The same of a fill's, whose first form has its context beside it.
inline CUDA_MEMSET_NODE_PARAMS_v2 newest(const CUDA_MEMSET_NODE_PARAMS& fill, CUcontext context) {
    return {fill.dst, fill.pitch, fill.value, fill.elementSize, fill.width, fill.height, context};
}

}  // namespace cuslice::fake
