#pragma once
// Arrays: memory that is read by position. Here they lie row by row; what they take is rounded as other memory is. The
// levels of a mipmapped array lie one after the other in one block.

#include <vector>

#include "fake/driver/context.h"

namespace cuslice::fake {

struct Array {
    Gpu* gpu = nullptr;
    CUcontext context = nullptr;
    Address at = 0;
    Address block = 0;      // the block that it lies in
    bool is_level = false;  // of a mipmapped array, which ends it
    bool sparse = false;    // without memory but what is bound to its tiles
    CUDA_ARRAY3D_DESCRIPTOR descriptor{};
    std::size_t element = 0;  // bytes
    std::size_t row = 0;      // bytes
    std::size_t rows = 0;     // in each layer
    std::size_t layers = 0;

    std::size_t bytes() const { return row * rows * layers; }
};

using ArrayTable = HandleTable<Array, CUarray, HandleKind::Array>;
extern ArrayTable arrays;

struct MipmappedArray {
    Gpu* gpu = nullptr;
    CUcontext context = nullptr;
    Address block = 0;
    std::vector<CUarray> levels;
};
using MipmappedArrayTable = HandleTable<MipmappedArray, CUmipmappedArray, HandleKind::MipmappedArray>;
extern MipmappedArrayTable mipmapped_arrays;

/// What an array of this description would be, without memory; or why there can be none.
CUresult shape_array(const CUDA_ARRAY3D_DESCRIPTOR& descriptor, Array& array);
/// Frees the block of an array that ends.
void free_array_block(Gpu& gpu, Address block);

/// Sparse arrays consist of tiles of so many bytes; their extents in elements depend on the element's size.
constexpr std::size_t tile_bytes = std::size_t{64} << 10;
/// Gives up what is bound to an array that ends.
void unbind_tiles(CUarray array);

/// Ends the arrays of a context that ends.
void end_arrays(Context& context);

}  // namespace cuslice::fake
