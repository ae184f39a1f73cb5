// SPDX-License-Identifier: Apache-2.0
#pragma once
// Lists that cuBLAS's functions are made from: there is one for each type of matrices, with the suffix _64 one for
// sizes of 64 bits, and of those that multiply matrices one for each kind of batch.

#include "fake/cublas/multiply.h"

/// function(integer, suffix, …) for sizes of both widths.
#define CUSLICE_BOTH_WIDTHS(function, ...) \
    function(int, __VA_OPT__(, ) __VA_ARGS__) function(int64_t, _64 __VA_OPT__(, ) __VA_ARGS__)

/// function(integer, suffix, letter, type, …) for the types of BLAS, whose letters stand in the functions' names.
#define CUSLICE_BLAS_TYPES(function, ...)                                    \
    CUSLICE_BOTH_WIDTHS(function, S, real_32f __VA_OPT__(, ) __VA_ARGS__)    \
    CUSLICE_BOTH_WIDTHS(function, D, real_64f __VA_OPT__(, ) __VA_ARGS__)    \
    CUSLICE_BOTH_WIDTHS(function, C, complex_32f __VA_OPT__(, ) __VA_ARGS__) \
    CUSLICE_BOTH_WIDTHS(function, Z, complex_64f __VA_OPT__(, ) __VA_ARGS__)

// Additions of a kind of batch (an enumerator of Batch) to the parameters and, without a type, to the arguments.
#define CUSLICE_STRIDE_none(type, matrix)
#define CUSLICE_STRIDE_pointers(type, matrix)
#define CUSLICE_STRIDE_strided(type, matrix) , type matrix##_stride
#define CUSLICE_COUNT_none(type)
#define CUSLICE_COUNT_pointers(type) , type count
#define CUSLICE_COUNT_strided(type) , type count

// The matrices of a function have all one type, or each the one that an argument says.
#define CUSLICE_TYPE_fixed(matrix)
#define CUSLICE_TYPE_passed(matrix) , int matrix##_type

/// Parameters of one matrix, of pointers to matrices or of a row of them: the calling convention is the same.
#define CUSLICE_MATRIX(matrix, integer, batch, typed) \
    const void *matrix CUSLICE_TYPE_##typed(matrix), integer matrix##_ld CUSLICE_STRIDE_##batch(long long, matrix)

/// Parameters of a multiplication, up to the size of its batch.
#define CUSLICE_OPERANDS(integer, batch, typed)                                                               \
    CublasHandle *handle, int op_a, int op_b, integer m, integer n, integer k, const void *alpha,             \
        CUSLICE_MATRIX(a, integer, batch, typed), CUSLICE_MATRIX(b, integer, batch, typed), const void *beta, \
        CUSLICE_MATRIX(c, integer, batch, typed) CUSLICE_COUNT_##batch(integer)

/// The Matrix of such parameters.
#define CUSLICE_TAKEN(matrix, batch) \
    Matrix { matrix, matrix##_ld, matrix##_type CUSLICE_STRIDE_##batch(, matrix) }

/// The Multiplication of such parameters; its scalars have C's type.
#define CUSLICE_MULTIPLICATION(function, batch)                                                           \
    Multiplication {                                                                                      \
        "" #function, op_a, op_b, m, n, k, alpha, CUSLICE_TAKEN(a, batch), CUSLICE_TAKEN(b, batch), beta, \
            CUSLICE_TAKEN(c, batch), c_type, Batch::batch CUSLICE_COUNT_##batch()                         \
    }
