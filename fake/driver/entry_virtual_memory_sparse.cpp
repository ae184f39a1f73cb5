// SPDX-License-Identifier: Apache-2.0
// Sparse arrays: tiles of 64 KiB, to which memory of a tile pool is bound extent by extent.

#include "fake/driver/array.h"
#include "fake/driver/physical.h"
#include "fake/driver/state.h"
#include "fake/driver/stream_pair.h"
#include "fake/driver/submit.h"

using namespace cuslice::fake;

namespace {

/// The tiles of one dimension's range, which begins at one and ends at one or at the array's end.
bool tiles_in(size_t offset, size_t extent, size_t tile, size_t whole, size_t& first, size_t& end) {
    if (extent == 0 || offset % tile != 0 || offset > whole || extent > whole - offset)
        return false;
    if ((offset + extent) % tile != 0 && offset + extent != whole)
        return false;
    first = offset / tile;
    end = (offset + extent + tile - 1) / tile;
    return true;
}

CUresult places_of(const CUarrayMapInfo& info, const Array& array, std::vector<TilePlace>& places) {
    const auto& level = info.subresource.sparseLevel;
    const TileExtent tile = tile_of(array);
    const bool layered = (array.descriptor.Flags & CUDA_ARRAY3D_LAYERED) != 0;
    size_t x = 0, x_end = 0, y = 0, y_end = 0, z = 0, z_end = 0;
    if (level.level != 0 || (!layered && level.layer != 0))
        return CUDA_ERROR_INVALID_VALUE;
    const bool flat = tile.depth == 1;
    if (flat && (level.offsetZ != 0 || level.extentDepth != 1))
        return CUDA_ERROR_INVALID_VALUE;
    const size_t z_from = layered ? level.layer : level.offsetZ;
    if (!tiles_in(level.offsetX, level.extentWidth, tile.width, array.descriptor.Width, x, x_end) ||
        !tiles_in(level.offsetY, level.extentHeight, tile.height, array.descriptor.Height, y, y_end) ||
        !tiles_in(z_from, level.extentDepth, tile.depth, array.layers, z, z_end)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (; z < z_end; z++) {
        for (size_t row = y; row < y_end; row++) {
            for (size_t column = x; column < x_end; column++)
                places.push_back({z, row, column});
        }
    }
    return CUDA_SUCCESS;
}

CUresult map_one(const CUarrayMapInfo& info, const Gpu& gpu) {
    if (info.flags != 0 || info.reserved[0] != 0 || info.reserved[1] != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (info.resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
        CUSLICE_UNSUPPORTED("sparse mipmapped arrays");
    Array* array = arrays.find(info.resource.array);
    if (info.resourceType != CU_RESOURCE_TYPE_ARRAY || array == nullptr)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!array->sparse || array->gpu != &gpu || info.deviceBitMask != 1U << gpu.ordinal ||
        info.subresourceType != CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    std::vector<TilePlace> places;
    CUSLICE_TRY(places_of(info, *array, places));
    const CUmemGenericAllocationHandle memory = info.memHandle.memHandle;
    const bool maps = info.memOperationType == CU_MEM_OPERATION_TYPE_MAP;
    if (maps) {
        if (info.memHandleType != CU_MEM_HANDLE_TYPE_GENERIC)
            return CUDA_ERROR_INVALID_VALUE;
        CUSLICE_TRY(bind_physical(memory, gpu, info.offset, places.size()));
    } else if (info.memOperationType != CU_MEM_OPERATION_TYPE_UNMAP || memory != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (const TilePlace& place : places) {
        unbind_tile(*array, place);
        if (maps)
            array->tiles[place] = memory;
    }
    return CUDA_SUCCESS;
}

/// Nothing runs that could see whether a tile is bound now or when the stream gets there.
CUresult map_arrays(CUarrayMapInfo* list, unsigned count, CUstream handle, DefaultStream form) {
    if (list == nullptr || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_STREAM(stream, handle, form);
    CUSLICE_TRY(refuse_in_capture(*stream));
    const Context* context = live_context(stream->context);
    if (context == nullptr)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    const DriverLock hold;
    for (unsigned i = 0; i < count; i++) {
        CUSLICE_TRY(map_one(list[i], *context->gpu));
    }
    return CUDA_SUCCESS;
}

}  // namespace

CUSLICE_STREAM_PAIR(cuMemMapArrayAsync, map_arrays, list, count, stream)
