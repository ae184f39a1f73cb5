#pragma once
// Arrays: memory that is read by position. Here they lie row by row; what they take is rounded as other memory is.

#include "virtual_gpu/fake/driver/context.h"

namespace cuslice::fake {

struct Array {
    Gpu* gpu = nullptr;
    CUcontext context = nullptr;
    Address at = 0;
    CUDA_ARRAY3D_DESCRIPTOR descriptor{};
    std::size_t element = 0;  // bytes
    std::size_t row = 0;      // bytes
    std::size_t rows = 0;     // in each layer
    std::size_t layers = 0;

    std::size_t bytes() const { return row * rows * layers; }
};

using ArrayTable = HandleTable<Array, CUarray, HandleKind::Array>;
extern ArrayTable arrays;

/// Ends the arrays of a context that ends.
void end_arrays(Context& context);

}  // namespace cuslice::fake
