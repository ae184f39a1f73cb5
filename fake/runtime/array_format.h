// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fake/runtime/state.h"

namespace cuslice::fake {

/// The driver's format and channel count for a channel description of signed, unsigned or float texels of 8, 16 or 32
/// bits. cudaErrorInvalidChannelDescriptor: none of these (normalised, compressed and planar formats among them).
cudaError_t to_driver_format(const cudaChannelFormatDesc& description, CUarray_format* format, unsigned* channels);

/// The way back.
cudaError_t from_driver_format(CUarray_format format, unsigned channels, cudaChannelFormatDesc* description);

/// Bytes of one element of an array. The context is current.
cudaError_t element_bytes(cudaArray_t array, size_t* bytes);

}  // namespace cuslice::fake
