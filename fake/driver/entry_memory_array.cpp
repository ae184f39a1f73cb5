// SPDX-License-Identifier: Apache-2.0
// Arrays: create, describe, destroy.

#include "fake/driver/api_prologue.h"
#include "fake/driver/array.h"
#include "fake/driver/state.h"

using namespace cuslice::fake;

namespace {

CUresult create(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
    CUSLICE_FIND_CURRENT(context);
    Array array;
    CUSLICE_TRY(shape_array(descriptor, array));
    array.gpu = context->gpu;
    array.context = context->handle;
    array.sparse = (descriptor.Flags & CUDA_ARRAY3D_SPARSE) != 0;
    if (array.sparse) {
        if (descriptor.Height == 0)
            return CUDA_ERROR_INVALID_VALUE;  // documented: 2D, 2D layered or 3D
        *out = arrays.create(array).first;
        return CUDA_SUCCESS;
    }
    CUSLICE_TRY(
        context->gpu->allocate(context->gpu->device, array.bytes(), BlockKind::Array, context->number, array.at));
    array.block = array.at;
    *out = arrays.create(array).first;
    return CUDA_SUCCESS;
}

CUDA_ARRAY3D_DESCRIPTOR wide(size_t width, size_t height, size_t depth, CUarray_format format, unsigned channels,
                             unsigned flags) {
    CUDA_ARRAY3D_DESCRIPTOR descriptor{};
    descriptor.Width = width;
    descriptor.Height = height;
    descriptor.Depth = depth;
    descriptor.Format = format;
    descriptor.NumChannels = channels;
    descriptor.Flags = flags;
    return descriptor;
}

template <typename Descriptor>
CUresult create_2d(CUarray* out, const Descriptor* d) {
    if (out == nullptr || d == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    return create(out, wide(d->Width, d->Height, 0, d->Format, d->NumChannels, 0));
}

template <typename Descriptor>
CUresult create_3d(CUarray* out, const Descriptor* d) {
    if (out == nullptr || d == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    return create(out, wide(d->Width, d->Height, d->Depth, d->Format, d->NumChannels, d->Flags));
}

template <typename Descriptor>
CUresult describe_2d(Descriptor* out, CUarray handle) {
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_IN(array, arrays, handle);
    using Number = decltype(out->Width);
    out->Width = static_cast<Number>(array->descriptor.Width);
    out->Height = static_cast<Number>(array->descriptor.Height);
    out->Format = array->descriptor.Format;
    out->NumChannels = array->descriptor.NumChannels;
    return CUDA_SUCCESS;
}

template <typename Descriptor>
CUresult describe_3d(Descriptor* out, CUarray handle) {
    CUSLICE_TRY(describe_2d(out, handle));
    const Array& array = *arrays.find(handle);
    out->Depth = static_cast<decltype(out->Depth)>(array.descriptor.Depth);
    out->Flags = array.descriptor.Flags;
    return CUDA_SUCCESS;
}

}  // namespace

CUSLICE_ENTRY_PAIR(cuArrayCreate, create_2d, out, descriptor)
CUSLICE_ENTRY_PAIR(cuArray3DCreate, create_3d, out, descriptor)
CUSLICE_ENTRY_PAIR(cuArrayGetDescriptor, describe_2d, out, array)
CUSLICE_ENTRY_PAIR(cuArray3DGetDescriptor, describe_3d, out, array)

CUSLICE_ENTRY(cuArrayDestroy, handle) {
    const DriverLock hold;
    CUSLICE_FIND_IN(array, arrays, handle);
    if (array->is_level)
        return CUDA_ERROR_INVALID_HANDLE;
    array->sparse ? unbind_tiles(*array) : array->gpu->free_at(array->gpu->device, array->block);
    arrays.destroy(handle);
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuArrayGetSparseProperties, out, handle) {
    CUSLICE_FIND_ARGUMENT(array, arrays, handle);
    if (out == nullptr || !array->sparse)
        return CUDA_ERROR_INVALID_VALUE;
    const TileExtent tile = tile_of(*array);
    *out = {};
    out->tileExtent = {static_cast<unsigned>(tile.width), static_cast<unsigned>(tile.height),
                       static_cast<unsigned>(tile.depth)};
    return CUDA_SUCCESS;
}
