// SPDX-License-Identifier: Apache-2.0
// Surface objects.

#include "fake/driver/api_prologue.h"
#include "fake/driver/array.h"
#include "fake/driver/texture.h"

using namespace cuslice::fake;

CUSLICE_ENTRY(cuSurfObjectCreate, out, resource) {
    if (out == nullptr || resource == nullptr || resource->resType != CU_RESOURCE_TYPE_ARRAY)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_CURRENT(context);
    CUSLICE_TRY(check_resource(*context, *resource));
    const Array* array = arrays.find(resource->res.array.hArray);
    if ((array->descriptor.Flags & CUDA_ARRAY3D_SURFACE_LDST) == 0)
        return CUDA_ERROR_INVALID_VALUE;
    *out = surfaces.create(Surface{context->handle, *resource}).first;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuSurfObjectDestroy, surface) {
    return surfaces.destroy(surface) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUSLICE_ENTRY(cuSurfObjectGetResourceDesc, out, handle) {
    CUSLICE_FIND_ARGUMENT(surface, surfaces, handle);
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    *out = surface->resource;
    return CUDA_SUCCESS;
}
