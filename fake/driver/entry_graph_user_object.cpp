// SPDX-License-Identifier: Apache-2.0
// Objects that graphs keep alive.

#include "fake/driver/api_prologue.h"
#include "fake/driver/graph.h"

using namespace cuslice::fake;

CUSLICE_ENTRY(cuUserObjectCreate, out, data, destroy, references, flags) {
    // Documented: the one flag has to be given.
    if (out == nullptr || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    return create_user_object(data, destroy, references, *out);
}

CUSLICE_ENTRY(cuUserObjectRetain, object, count) { return retain_user_object(object, count); }

CUSLICE_ENTRY(cuUserObjectRelease, object, count) { return release_user_object(object, count); }

CUSLICE_ENTRY(cuGraphRetainUserObject, handle, object, count, flags) {
    CUSLICE_FIND_ARGUMENT(graph, graphs, handle);
    if ((flags & ~unsigned{CU_GRAPH_USER_OBJECT_MOVE}) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    // With the flag the caller's references become the graph's. Whether there are as many is looked at either way.
    CUSLICE_TRY(retain_user_object(object, count));
    if ((flags & CU_GRAPH_USER_OBJECT_MOVE) != 0)
        release_user_object(object, count);
    graph->objects.take(object, count);
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuGraphReleaseUserObject, handle, object, count) {
    CUSLICE_FIND_ARGUMENT(graph, graphs, handle);
    return graph->objects.release(object, count);
}
