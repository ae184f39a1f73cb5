// SPDX-License-Identifier: Apache-2.0
#pragma once
// cuBLASLt's descriptors: plain structures in memory of the caller's or the library's, whose fields are set and read by
// the number of an attribute. Values and sizes from cublasLt.h of CUDA 13.0 (tests/fake/libraries/headers_test.cpp).

#include "fake/cublas/api.h"

namespace cuslice::fake {

/// Kind of a structure, stored in its first bytes.
enum class DescriptorKind : std::uint32_t {
    none = 0,
    matmul = 0x6c744d4d,
    layout = 0x6c744c4f,
    preference = 0x6c745052,
    algorithm = 0x6c74414c,
};

struct MatmulDescriptor {
    static constexpr DescriptorKind kOwnKind = DescriptorKind::matmul;
    DescriptorKind kind;
    std::int32_t compute, scale_type, pointer_mode, op_a, op_b, op_c, fill_mode;
    std::uint32_t epilogue;
    std::int32_t multiprocessors, aux_type, bias_type;
    std::int32_t scale_modes[5];  // of A, B, C, D and the epilogue's second output
    std::int32_t out_scale_mode, chunk_rows, chunk_columns;
    std::int8_t fast_accumulation;
    void* bias;
    std::int64_t bias_stride;
    void* aux;
    std::int64_t aux_ld, aux_stride, alpha_stride;
    void* scales[4];  // of A, B, C and D
    void *largest_d, *aux_scale, *aux_largest, *counters_in, *counters_out, *out_scale, *emulation;
};
static_assert(sizeof(MatmulDescriptor) <= sizeof(std::uint64_t[32]));  // cublasLtMatmulDescOpaque_t

struct LayoutDescriptor {
    static constexpr DescriptorKind kOwnKind = DescriptorKind::layout;
    DescriptorKind kind;
    std::uint32_t type;
    std::uint64_t rows, columns;
    std::int64_t ld, stride, plane;
    std::int32_t order, count;
    std::uint32_t batch_mode;
};
static_assert(sizeof(LayoutDescriptor) <= sizeof(std::uint64_t[8]));  // cublasLtMatrixLayoutOpaque_t

struct PreferenceDescriptor {
    static constexpr DescriptorKind kOwnKind = DescriptorKind::preference;
    DescriptorKind kind;
    std::uint32_t search_mode, reductions;
    std::uint64_t workspace;
    std::uint32_t alignments[4];  // of A, B, C and D
    float waves;
    std::uint64_t implementations;
};
static_assert(sizeof(PreferenceDescriptor) <= sizeof(std::uint64_t[8]));  // cublasLtMatmulPreferenceOpaque_t

/// cublasLtMatmulAlgo_t
struct Algorithm {
    static constexpr DescriptorKind kOwnKind = DescriptorKind::algorithm;
    DescriptorKind kind;
    std::int32_t id;
    std::uint32_t tile;
    std::int32_t splits;
    std::uint32_t reduction, swizzling, option, stages;
    std::uint16_t inner_shape, cluster_shape;
    std::uint64_t rest[3];
};
static_assert(sizeof(Algorithm) == sizeof(std::uint64_t[8]));

/// cublasLtMatmulHeuristicResult_t
struct HeuristicResult {
    Algorithm algorithm;
    std::size_t workspace;
    CublasStatus state;
    float waves;
    int reserved[4];
};
static_assert(sizeof(HeuristicResult) == 96);

/// cublasLtOrder_t
enum MatrixOrder : int { order_columns = 0, order_rows = 1 };

/// cublasLtEpilogue_t, bit by bit
enum Epilogue : unsigned {
    epilogue_default = 1,
    epilogue_relu = 2,
    epilogue_bias = 4,
    epilogue_drelu = 8,
    epilogue_bias_gradient = 16,
    epilogue_gelu = 32,
    epilogue_dgelu = 64,
    epilogue_aux = 128,
    epilogue_bias_gradient_a = 256,
    epilogue_bias_gradient_b = 512,
};

/// True if a handle points to a structure of this type.
template <class Descriptor>
bool is_descriptor(const Descriptor* descriptor) {
    return descriptor != nullptr && descriptor->kind == Descriptor::kOwnKind;
}

/// CUBLAS_STATUS_NOT_INITIALIZED unless it is cuBLASLt's handle, or cuBLAS's, which does as well.
CublasStatus check_light_handle(const void* handle);

}  // namespace cuslice::fake
