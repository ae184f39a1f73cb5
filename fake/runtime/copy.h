// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fake/runtime/state.h"

namespace cuslice::fake {

/// True for the five directions that the runtime knows.
constexpr bool is_direction(cudaMemcpyKind kind) { return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault; }

/// The kind of memory that `kind` says is at the source and at the destination. Default: the driver finds out by the
/// address.
constexpr CUmemorytype source_type(cudaMemcpyKind kind) {
    return kind == cudaMemcpyDefault                                        ? CU_MEMORYTYPE_UNIFIED
           : kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice ? CU_MEMORYTYPE_HOST
                                                                            : CU_MEMORYTYPE_DEVICE;
}
constexpr CUmemorytype destination_type(cudaMemcpyKind kind) {
    return kind == cudaMemcpyDefault                                        ? CU_MEMORYTYPE_UNIFIED
           : kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost ? CU_MEMORYTYPE_HOST
                                                                            : CU_MEMORYTYPE_DEVICE;
}

}  // namespace cuslice::fake
