// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

#include "virtual_gpu/driver/array_format.h"
#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice {

// Sizes here count an array's elements alone. They are lower bounds: the driver adds padding.

constexpr unsigned kWithoutMemory = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;
constexpr unsigned kLayers = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP;

struct Extents {
    uint64_t width, height, depth;
    uint64_t bytes(uint64_t element) const {
        uint64_t all = element;
        for (const uint64_t extent : {width, std::max<uint64_t>(height, 1), std::max<uint64_t>(depth, 1)})
            if (__builtin_mul_overflow(all, extent, &all))
                return ~0ull;
        return all;
    }
};

// Lower bound on an array's size in bytes; 0 if it isn't known, ~0 if it overflows.
template <typename Descriptor>
uint64_t least_2d(const Descriptor* d) {
    return d ? Extents{d->Width, d->Height, 0}.bytes(channel_bytes(d->Format) * d->NumChannels) : 0;
}

template <typename Descriptor>
uint64_t least_3d(const Descriptor* d, unsigned levels = 1) {
    if (!d || d->Flags & kWithoutMemory)
        return 0;
    const uint64_t element = channel_bytes(d->Format) * d->NumChannels;
    Extents extents{d->Width, d->Height, d->Depth};
    const bool layers = d->Flags & kLayers;
    const uint64_t largest = std::max({extents.width, extents.height, layers ? 0 : extents.depth});
    uint64_t sum = 0;
    for (unsigned level = std::clamp(levels, 1u, std::max(1u, static_cast<unsigned>(std::bit_width(largest)))); level;
         level--) {
        if (__builtin_add_overflow(sum, extents.bytes(element), &sum))
            return ~0ull;
        extents.width = std::max<uint64_t>(extents.width / 2, 1);
        extents.height /= 2;
        if (!layers)
            extents.depth /= 2;
    }
    return sum;
}

}  // namespace cuslice
