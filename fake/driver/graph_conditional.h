// SPDX-License-Identifier: Apache-2.0
#pragma once
// Conditional nodes: graphs of which a value decides whether they run (cuda.h, CUDA_CONDITIONAL_NODE_PARAMS). On a GPU
// kernels set the value. Here none runs, so it is the default that the handle was made with, in each launch; the body
// of a loop runs once where that isn't zero.

#include <memory>

#include "fake/driver/graph.h"

namespace cuslice::fake {

/// Makes a handle of a graph's, as cuGraphConditionalHandleCreate does.
CUresult make_condition(CUgraph graph, CUcontext context, unsigned value, unsigned flags,
                        CUgraphConditionalHandle* out);
/// Makes the bodies of a node that is added to `graph`, and writes them into the program's parameters.
CUresult make_bodies(CUgraph graph, CUDA_CONDITIONAL_NODE_PARAMS& params, std::shared_ptr<ConditionalBodies>& out);
/// The node that has these is destroyed: its handle has none any more.
void give_up_condition(CUgraph graph, const ConditionalBodies& bodies);
/// For an instance: CUDA_ERROR_INVALID_VALUE if a handle has no node, CUDA_ERROR_NOT_SUPPORTED if there are nodes in a
/// body that may not be there.
CUresult check_conditional_nodes(const Graph& graph);
bool has_unused_condition(const Graph& graph);

}  // namespace cuslice::fake
