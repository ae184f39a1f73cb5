// SPDX-License-Identifier: Apache-2.0
#pragma once
// Makes the work of graph nodes, checked as cuGraphAdd…Node documents: for nodes that are added, for changes of nodes
// and for changes of an instance's.

#include "fake/driver/graph_work.h"

namespace cuslice::fake {

/// Makes the work of a node of kernels, copies, fills, host functions, events, or of an empty one;
/// CUDA_ERROR_INVALID_VALUE for any other type. A node of events has no task: a launch records the event, or waits for
/// it.
CUresult make_work(const CUgraphNodeParams& params, NodeWork& out);

/// For functions that name a node's type among its parameters: a copy or fill without a context has the current one, as
/// NVIDIA's own tests of cuda.bindings expect it. Error of the current context.
CUresult take_context(CUgraphNodeParams& params);

}  // namespace cuslice::fake
