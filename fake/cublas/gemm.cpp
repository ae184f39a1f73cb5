// SPDX-License-Identifier: Apache-2.0
// cublas<t>gemm and its batched forms, whose names say the type, each for 32-bit and 64-bit integers.

#include "fake/cublas/typed.h"

using namespace cuslice::fake;

#define CUSLICE_MULTIPLY(function, integer, batch, type)                  \
    CublasStatus function(CUSLICE_OPERANDS(integer, batch, fixed)) {      \
        constexpr int a_type = type, b_type = type, c_type = type;        \
        return multiply(handle, CUSLICE_MULTIPLICATION(function, batch)); \
    }
#define CUSLICE_GEMM(integer, suffix, letter, type, version)                       \
    CUSLICE_MULTIPLY(cublas##letter##gemm##version##suffix, integer, none, type)   \
    CUSLICE_MULTIPLY(cublas##letter##gemmBatched##suffix, integer, pointers, type) \
    CUSLICE_MULTIPLY(cublas##letter##gemmStridedBatched##suffix, integer, strided, type)

extern "C" {
CUSLICE_BLAS_TYPES(CUSLICE_GEMM, _v2)
CUSLICE_BOTH_WIDTHS(CUSLICE_GEMM, H, real_16f, )
}
