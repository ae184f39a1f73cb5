// SPDX-License-Identifier: Apache-2.0
// cublasGemmEx and its batched forms, whose types are arguments, each for 32-bit and 64-bit integers.

#include "fake/cublas/typed.h"

using namespace cuslice::fake;

namespace {

constexpr int kDefaultAlgorithm = -1;  // CUBLAS_GEMM_DEFAULT

// cublasGemmAlgo_t: CUBLAS_GEMM_DEFAULT, ALGO0 to ALGO23, the same for tensor cores, CUBLAS_GEMM_AUTOTUNE
bool is_algorithm(int algorithm) {
    return (algorithm >= kDefaultAlgorithm && algorithm <= 23) || (algorithm >= 99 && algorithm <= 115) ||
           algorithm == 999;
}

CublasStatus multiply_types(CublasHandle* handle, Multiplication work, int compute, int algorithm) {
    CUSLICE_TRY(check_handle(handle));
    if (!is_algorithm(algorithm))
        return CublasStatus::invalid_value;
    if (work.a.type != work.b.type || !is_multiplied(compute, work.a.type, work.c.type))
        return CublasStatus::not_supported;
    work.scale_type = scale_type_of(compute, work.c.type);
    return multiply(handle, work);
}

}  // namespace

#define CUSLICE_MULTIPLY_TYPES(function, integer, batch)                                            \
    CublasStatus function(CUSLICE_OPERANDS(integer, batch, passed), int compute, int algorithm) {   \
        return multiply_types(handle, CUSLICE_MULTIPLICATION(function, batch), compute, algorithm); \
    }
#define CUSLICE_GEMM_EX(integer, suffix)                                                                \
    CUSLICE_MULTIPLY_TYPES(cublasGemmEx##suffix, integer, none)                                         \
    CUSLICE_MULTIPLY_TYPES(cublasGemmBatchedEx##suffix, integer, pointers)                              \
    CUSLICE_MULTIPLY_TYPES(cublasGemmStridedBatchedEx##suffix, integer, strided)                        \
    CublasStatus cublasSgemmEx##suffix(CUSLICE_OPERANDS(integer, none, passed)) {                       \
        return multiply_types(handle, CUSLICE_MULTIPLICATION(cublasSgemmEx##suffix, none), compute_32f, \
                              kDefaultAlgorithm);                                                       \
    }

extern "C" {
CUSLICE_BOTH_WIDTHS(CUSLICE_GEMM_EX)
}
