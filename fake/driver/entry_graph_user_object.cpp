// Objects that graphs keep alive.

#include "fake/driver/api_prologue.h"
#include "fake/driver/graph.h"

using namespace cuslice::fake;

CUresult CUDAAPI cuUserObjectCreate(CUuserObject* out, void* data, CUhostFn destroy, unsigned int references,
                                    unsigned int flags) {
    CUSLICE_ENTER(cuUserObjectCreate)
    // Documented: the one flag has to be given.
    if (out == nullptr || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) return CUDA_ERROR_INVALID_VALUE;
    return create_user_object(data, destroy, references, *out);
}

CUresult CUDAAPI cuUserObjectRetain(CUuserObject object, unsigned int count) {
    CUSLICE_ENTER(cuUserObjectRetain)
    return retain_user_object(object, count);
}

CUresult CUDAAPI cuUserObjectRelease(CUuserObject object, unsigned int count) {
    CUSLICE_ENTER(cuUserObjectRelease)
    return release_user_object(object, count);
}

CUresult CUDAAPI cuGraphRetainUserObject(CUgraph handle, CUuserObject object, unsigned int count, unsigned int flags) {
    CUSLICE_ENTER(cuGraphRetainUserObject)
    Graph* graph = graphs.find(handle);
    if (graph == nullptr || (flags & ~unsigned{CU_GRAPH_USER_OBJECT_MOVE}) != 0) return CUDA_ERROR_INVALID_VALUE;
    // With the flag the caller's references become the graph's. Whether there are as many is looked at either way.
    if (const CUresult bad = retain_user_object(object, count); bad != CUDA_SUCCESS) return bad;
    if ((flags & CU_GRAPH_USER_OBJECT_MOVE) != 0) release_user_object(object, count);
    graph->objects.take(object, count);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphReleaseUserObject(CUgraph handle, CUuserObject object, unsigned int count) {
    CUSLICE_ENTER(cuGraphReleaseUserObject)
    Graph* graph = graphs.find(handle);
    return graph == nullptr ? CUDA_ERROR_INVALID_VALUE : graph->objects.release(object, count);
}
