// SPDX-License-Identifier: Apache-2.0
// Graphs as far as their functions are the driver's own: made by capture, instantiated, looked at, destroyed. Nodes
// that are added one by one: graph_nodes.cpp. Edges with data fail by name.

#include "fake/runtime/forward.h"

using namespace cuslice::fake;

CUSLICE_FORWARD(cudaGraphCreate, cuGraphCreate, 10000, graph, flags)
CUSLICE_FORWARD(cudaGraphDestroy, cuGraphDestroy, 10000, graph)
CUSLICE_FORWARD(cudaGraphClone, cuGraphClone, 10000, clone, original)
CUSLICE_FORWARD(cudaGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, 11040, executable, graph, flags)
CUSLICE_FORWARD(cudaGraphExecDestroy, cuGraphExecDestroy, 10000, executable)
CUSLICE_FORWARD(cudaGraphExecGetFlags, cuGraphExecGetFlags, 12000, executable, flags)
CUSLICE_FORWARD(cudaGraphGetNodes, cuGraphGetNodes, 10000, graph, nodes, count)
CUSLICE_FORWARD(cudaGraphGetRootNodes, cuGraphGetRootNodes, 10000, graph, nodes, count)
CUSLICE_FORWARD(cudaGraphNodeGetType, cuGraphNodeGetType, 10000, node, type)
CUSLICE_FORWARD(cudaGraphNodeFindInClone, cuGraphNodeFindInClone, 10000, node, original, clone)
CUSLICE_FORWARD(cudaGraphDestroyNode, cuGraphDestroyNode, 10000, node)
CUSLICE_FORWARD(cudaGraphAddEmptyNode, cuGraphAddEmptyNode, 10000, node, graph, dependencies, count)
CUSLICE_FORWARD(cudaGraphAddChildGraphNode, cuGraphAddChildGraphNode, 10000, node, graph, dependencies, count, child)
CUSLICE_FORWARD(cudaGraphDebugDotPrint, cuGraphDebugDotPrint, 11030, graph, path, flags)
CUSLICE_FORWARD(cudaThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, 10010, mode)
CUSLICE_FORWARD(cudaUserObjectCreate, cuUserObjectCreate, 11030, object, pointer, destroy, references, flags)
CUSLICE_FORWARD(cudaUserObjectRetain, cuUserObjectRetain, 11030, object, count)
CUSLICE_FORWARD(cudaUserObjectRelease, cuUserObjectRelease, 11030, object, count)
CUSLICE_FORWARD(cudaGraphRetainUserObject, cuGraphRetainUserObject, 11030, graph, object, count, flags)
CUSLICE_FORWARD(cudaGraphReleaseUserObject, cuGraphReleaseUserObject, 11030, graph, object, count)
