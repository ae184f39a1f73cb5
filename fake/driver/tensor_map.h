// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parameters that tensor maps of every kind share, and checks of cuda.h's rules for them.

#include "fake/driver/cuda_api.h"
#include "fake/spec/gpu_spec.h"

namespace cuslice::fake {

struct TensorMap {
    CUtensorMapDataType type;
    unsigned rank;
    void* address;
    const cuuint64_t* dimensions;  // elements
    const cuuint64_t* strides;     // bytes, of all dimensions but the first
    const unsigned* steps;
    CUtensorMapInterleave interleave;
    CUtensorMapSwizzle swizzle;
    CUtensorMapL2promotion promotion;
    CUtensorMapFloatOOBfill fill;
};

/// How an element is kept. The packed types are of 10.0 and later (PTX ISA, "Sub-byte types").
struct TensorElement {
    unsigned bits;
    bool is_float;
    bool is_packed;
    bool is_padded;  // packed with gaps: 16U4_ALIGN16B and 16U6_ALIGN16B
};

/// Null if there is no such type.
const TensorElement* tensor_element(CUtensorMapDataType type);

/// CUDA_ERROR_INVALID_VALUE where one of the rules that all kinds of maps share is broken. `inner`: the elements of the
/// innermost dimension that one copy moves.
CUresult check_tensor_map(const GpuSpec& gpu, const TensorMap& map, unsigned inner);

/// The alignment in bytes that a map of this kind needs of its address.
unsigned tensor_alignment(const TensorMap& map);

/// Writes the opaque value, CU_TENSOR_MAP_NUM_QWORDS words. cuda.h has CUtensorMap at 128 bytes, and the manual asks
/// for 64: a program that goes by that has maps to which there can be no reference.
void write_tensor_map(uint64_t* out, const TensorMap& map);

/// Puts another address into a map that write_tensor_map has made: CUDA_ERROR_INVALID_VALUE if it is none, or the
/// address isn't aligned.
CUresult replace_tensor_address(uint64_t* map, void* address);

}  // namespace cuslice::fake
