// SPDX-License-Identifier: Apache-2.0
#pragma once
// cuBLASLt's descriptors: plain structures in memory of the caller's or the library's, whose fields are set and read by
// the number of an attribute. Values and sizes from cublasLt.h of CUDA 13.0 (tests/fake/libraries/headers_test.cpp).

#include "fake/cublas/api.h"

namespace cuslice::fake {

/// Kind of a structure, stored in its first bytes.
enum class DescriptorKind : uint32_t {
    none = 0,
    matmul = 0x6c744d4d,
    layout = 0x6c744c4f,
    preference = 0x6c745052,
    algorithm = 0x6c74414c,
};

struct MatmulDescriptor {
    static constexpr DescriptorKind kOwnKind = DescriptorKind::matmul;
    DescriptorKind kind;
    int32_t compute, scale_type, pointer_mode, op_a, op_b, op_c, fill_mode;
    uint32_t epilogue;
    int32_t multiprocessors, aux_type, bias_type;
    int32_t scale_modes[5];  // of A, B, C, D and the epilogue's second output
    int32_t out_scale_mode, chunk_rows, chunk_columns;
    int8_t fast_accumulation;
    void* bias;
    int64_t bias_stride;
    void* aux;
    int64_t aux_ld, aux_stride, alpha_stride;
    void* scales[4];  // of A, B, C and D
    void *largest_d, *aux_scale, *aux_largest, *counters_in, *counters_out, *out_scale, *emulation;
};
static_assert(sizeof(MatmulDescriptor) <= sizeof(uint64_t[32]));  // cublasLtMatmulDescOpaque_t

struct LayoutDescriptor {
    static constexpr DescriptorKind kOwnKind = DescriptorKind::layout;
    DescriptorKind kind;
    uint32_t type;
    uint64_t rows, columns;
    int64_t ld, stride, plane;
    int32_t order, count;
    uint32_t batch_mode;
};
static_assert(sizeof(LayoutDescriptor) <= sizeof(uint64_t[8]));  // cublasLtMatrixLayoutOpaque_t

struct PreferenceDescriptor {
    static constexpr DescriptorKind kOwnKind = DescriptorKind::preference;
    DescriptorKind kind;
    uint32_t search_mode, reductions;
    uint64_t workspace;
    uint32_t alignments[4];  // of A, B, C and D
    float waves;
    uint64_t implementations;
};
static_assert(sizeof(PreferenceDescriptor) <= sizeof(uint64_t[8]));  // cublasLtMatmulPreferenceOpaque_t

/// cublasLtMatmulAlgo_t
struct Algorithm {
    static constexpr DescriptorKind kOwnKind = DescriptorKind::algorithm;
    DescriptorKind kind;
    int32_t id;
    uint32_t tile;
    int32_t splits;
    uint32_t reduction, swizzling, option, stages;
    uint16_t inner_shape, cluster_shape;
    uint64_t rest[3];
};
static_assert(sizeof(Algorithm) == sizeof(uint64_t[8]));

/// cublasLtMatmulHeuristicResult_t
struct HeuristicResult {
    Algorithm algorithm;
    size_t workspace;
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
