// SPDX-License-Identifier: Apache-2.0
// Mipmapped arrays: each level is an array of half the extents of the one before, in one block with it.

#include <algorithm>
#include <bit>

#include "fake/driver/api_prologue.h"
#include "fake/driver/array.h"
#include "fake/driver/state.h"

using namespace cuslice::fake;

namespace {

size_t halved(size_t extent, unsigned level) { return extent == 0 ? 0 : std::max<size_t>(extent >> level, 1); }

/// The description of one level; layers are not halved.
CUDA_ARRAY3D_DESCRIPTOR level_of(const CUDA_ARRAY3D_DESCRIPTOR& whole, unsigned level) {
    CUDA_ARRAY3D_DESCRIPTOR descriptor = whole;
    descriptor.Width = halved(whole.Width, level);
    descriptor.Height = halved(whole.Height, level);
    if ((whole.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) == 0)
        descriptor.Depth = halved(whole.Depth, level);
    return descriptor;
}

/// Documented: the number of levels is clamped to what the extents allow.
unsigned clamped_levels(const CUDA_ARRAY3D_DESCRIPTOR& d, unsigned levels) {
    const bool layers = (d.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
    const size_t largest = std::max({d.Width, d.Height, layers ? 0 : d.Depth});
    return std::clamp(levels, 1U, static_cast<unsigned>(std::bit_width(largest)));
}

CUresult create(CUmipmappedArray* out, const CUDA_ARRAY3D_DESCRIPTOR& descriptor, unsigned asked) {
    CUSLICE_FIND_CURRENT(context);
    if ((descriptor.Flags & CUDA_ARRAY3D_SPARSE) != 0)
        CUSLICE_UNSUPPORTED("sparse mipmapped arrays");
    std::vector<Array> levels(clamped_levels(descriptor, asked));
    size_t bytes = 0;
    for (unsigned i = 0; i < levels.size(); i++) {
        Array& level = levels[i];
        CUSLICE_TRY(shape_array(level_of(descriptor, i), level));
        level.gpu = context->gpu;
        level.context = context->handle;
        level.is_level = true;
        level.at = bytes;  // for now from the block's beginning
        bytes += rounded(level.bytes());
    }
    Gpu& gpu = *context->gpu;
    Address block = 0;
    CUSLICE_TRY(gpu.allocate(gpu.device, bytes, BlockKind::Array, context->number, block));
    MipmappedArray mipmap{&gpu, context->handle, block, {}};
    for (Array& level : levels) {
        level.at += block;
        level.block = block;
        mipmap.levels.push_back(arrays.create(level).first);
    }
    *out = mipmapped_arrays.create(std::move(mipmap)).first;
    return CUDA_SUCCESS;
}

}  // namespace

CUSLICE_ENTRY(cuMipmappedArrayCreate, out, descriptor, levels) {
    if (out == nullptr || descriptor == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    return create(out, *descriptor, levels);
}

CUSLICE_ENTRY(cuMipmappedArrayGetLevel, out, handle, level) {
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_IN(mipmap, mipmapped_arrays, handle);
    if (level >= mipmap->levels.size())
        return CUDA_ERROR_INVALID_VALUE;
    *out = mipmap->levels[level];
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuMipmappedArrayDestroy, handle) {
    const DriverLock hold;
    CUSLICE_FIND_IN(mipmap, mipmapped_arrays, handle);
    for (const CUarray level : mipmap->levels)
        arrays.destroy(level);
    mipmap->gpu->free_at(mipmap->gpu->device, mipmap->block);
    mipmapped_arrays.destroy(handle);
    return CUDA_SUCCESS;
}
