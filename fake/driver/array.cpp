// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/array.h"

#include <algorithm>
#include <mutex>

#include "fake/driver/api_prologue.h"
#include "fake/driver/physical.h"
#include "virtual_gpu/driver/array_format.h"

namespace cuslice::fake {

namespace {

constexpr unsigned kAllFlags = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP |
                               CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_COLOR_ATTACHMENT | CUDA_ARRAY3D_SPARSE;

}  // namespace

CUresult shape_array(const CUDA_ARRAY3D_DESCRIPTOR& descriptor, Array& array) {
    const unsigned channels = descriptor.NumChannels;
    if (descriptor.Width == 0 || !is_channel_count(channels))
        return CUDA_ERROR_INVALID_VALUE;
    if (descriptor.Width > 131072 || descriptor.Height > 131072 || descriptor.Depth > 16384)
        return CUDA_ERROR_INVALID_VALUE;
    if (descriptor.Height == 0 && descriptor.Depth != 0 && (descriptor.Flags & CUDA_ARRAY3D_LAYERED) == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if ((descriptor.Flags & ~kAllFlags) != 0)
        CUSLICE_UNSUPPORTED("deferred arrays and those for video");
    const size_t bytes = channel_bytes(descriptor.Format);
    if (bytes == 0)
        CUSLICE_UNSUPPORTED("arrays of planar, normalized and block-compressed formats");
    array.descriptor = descriptor;
    array.element = bytes * channels;
    array.row = descriptor.Width * array.element;
    array.rows = std::max<size_t>(descriptor.Height, 1);
    array.layers = std::max<size_t>(descriptor.Depth, 1);
    return CUDA_SUCCESS;
}

void unbind_tile(Array& array, const TilePlace& place) {
    const auto found = array.tiles.find(place);
    if (found == array.tiles.end())
        return;
    unbind_physical(found->second);
    array.tiles.erase(found);
}

void unbind_tiles(Array& array) {
    for (const auto& [place, memory] : array.tiles)
        unbind_physical(memory);
    array.tiles.clear();
}

void end_arrays(Context& context) {
    arrays.each([&](CUarray handle, Array& array) {
        if (array.context != context.handle)
            return;
        if (array.sparse)
            unbind_tiles(array);
        if (!array.is_level && !array.sparse)
            array.gpu->free_at(array.gpu->device, array.block);
        arrays.destroy(handle);
    });
    mipmapped_arrays.each([&](CUmipmappedArray handle, MipmappedArray& mipmap) {
        if (mipmap.context != context.handle)
            return;
        mipmap.gpu->free_at(mipmap.gpu->device, mipmap.block);
        mipmapped_arrays.destroy(handle);
    });
}

TileExtent tile_of(const Array& array) {
    const bool flat = array.descriptor.Depth == 0 || (array.descriptor.Flags & CUDA_ARRAY3D_LAYERED) != 0;
    switch (array.element) {
        case 1:
            return flat ? TileExtent{256, 256, 1} : TileExtent{64, 32, 32};
        case 2:
            return flat ? TileExtent{256, 128, 1} : TileExtent{32, 32, 32};
        case 4:
            return flat ? TileExtent{128, 128, 1} : TileExtent{32, 32, 16};
        case 8:
            return flat ? TileExtent{128, 64, 1} : TileExtent{32, 16, 16};
        default:
            return flat ? TileExtent{64, 64, 1} : TileExtent{16, 16, 16};
    }
}

}  // namespace cuslice::fake
