// Graphs as far as their functions are the driver's own: made by capture, instantiated, looked at, destroyed. Nodes
// that are added one by one: graph_nodes.cpp. Edges with data fail by name.

#include "fake/runtime/state.h"

using namespace cuslice::fake;

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned int flags) {
    return in_context(CU(cuGraphCreate, 10000), graph, flags);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return in_context(CU(cuGraphDestroy, 10000), graph); }

cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t original) {
    return in_context(CU(cuGraphClone, 10000), clone, original);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
    return in_context(CU(cuGraphInstantiateWithFlags, 11040), executable, graph, flags);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
    return cudaGraphInstantiateWithFlags(executable, graph, flags);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    return in_context(CU(cuGraphExecDestroy, 10000), executable);
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t executable, unsigned long long* flags) {
    return in_context(CU(cuGraphExecGetFlags, 12000), executable, reinterpret_cast<cuuint64_t*>(flags));
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* result) {
    return in_context(CU(cuGraphExecUpdate, 12000), executable, graph,
                      same_layout<CUgraphExecUpdateResultInfo>(result));
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
    return in_context(CU(cuGraphGetNodes, 10000), graph, nodes, count);
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
    return in_context(CU(cuGraphGetRootNodes, 10000), graph, nodes, count);
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
    return in_context(CU(cuGraphNodeGetType, 10000), node, reinterpret_cast<CUgraphNodeType*>(type));
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* node, cudaGraphNode_t original, cudaGraph_t clone) {
    return in_context(CU(cuGraphNodeFindInClone, 10000), node, original, clone);
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) { return in_context(CU(cuGraphDestroyNode, 10000), node); }

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                  size_t count) {
    return in_context(CU(cuGraphAddEmptyNode, 10000), node, graph, dependencies, count);
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                       size_t count, cudaGraph_t child) {
    return in_context(CU(cuGraphAddChildGraphNode, 10000), node, graph, dependencies, count, child);
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned int flags) {
    return in_context(CU(cuGraphDebugDotPrint, 11030), graph, path, flags);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
    return in_context(CU(cuThreadExchangeStreamCaptureMode, 10010), reinterpret_cast<CUstreamCaptureMode*>(mode));
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* pointer, cudaHostFn_t destroy, unsigned int references,
                                 unsigned int flags) {
    return in_context(CU(cuUserObjectCreate, 11030), object, pointer, destroy, references, flags);
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count) {
    return in_context(CU(cuUserObjectRetain, 11030), object, count);
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count) {
    return in_context(CU(cuUserObjectRelease, 11030), object, count);
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count,
                                      unsigned int flags) {
    return in_context(CU(cuGraphRetainUserObject, 11030), graph, object, count, flags);
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count) {
    return in_context(CU(cuGraphReleaseUserObject, 11030), graph, object, count);
}
