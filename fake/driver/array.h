// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arrays: memory that is read by position. Here they lie row by row; what they take is rounded as other memory is. The
// levels of a mipmapped array lie one after the other in one block.

#include <array>
#include <map>
#include <vector>

#include "fake/driver/context.h"

namespace cuslice::fake {

/// A tile of a sparse array by its place in the array; a layer is a place in z.
using TilePlace = std::array<size_t, 3>;

struct Array {
    Gpu* gpu = nullptr;
    CUcontext context = nullptr;
    Address at = 0;
    Address block = 0;      // the block that it lies in
    bool is_level = false;  // of a mipmapped array, which ends it
    bool sparse = false;    // without memory but what is bound to its tiles
    CUDA_ARRAY3D_DESCRIPTOR descriptor{};
    size_t element = 0;  // bytes
    size_t row = 0;      // bytes
    size_t rows = 0;     // in each layer
    size_t layers = 0;
    /// Memory that is bound to the tiles of a sparse array; the driver's lock is held.
    std::map<TilePlace, CUmemGenericAllocationHandle> tiles;

    size_t bytes() const { return row * rows * layers; }
};

inline constinit HandleTable<Array, CUarray, HandleKind::Array> arrays;

struct MipmappedArray {
    Gpu* gpu = nullptr;
    CUcontext context = nullptr;
    Address block = 0;
    std::vector<CUarray> levels;
};
inline constinit HandleTable<MipmappedArray, CUmipmappedArray, HandleKind::MipmappedArray> mipmapped_arrays;

/// True for as many channels as an element can have.
constexpr bool is_channel_count(unsigned channels) { return channels == 1 || channels == 2 || channels == 4; }

/// Fills in the shape of an array from its description, without memory; or returns why there can be no such array.
CUresult shape_array(const CUDA_ARRAY3D_DESCRIPTOR& descriptor, Array& array);
/// Gives up what is bound to one tile, or to all tiles of an array that ends. The driver's lock is held.
void unbind_tile(Array& array, const TilePlace& place);
void unbind_tiles(Array& array);

/// Ends the arrays of a context that ends.
void end_arrays(Context& context);

/// How many elements a tile of a sparse array has: the shapes that graphics APIs call standard.
struct TileExtent {
    size_t width, height, depth;
};
TileExtent tile_of(const Array& array);

}  // namespace cuslice::fake
