// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks of matrices that cuBLAS and cuBLASLt share.

#include "fake/cublas/api.h"

namespace cuslice::fake {

struct Matrix {
    const void* address;
    int64_t ld;
    int type;
    int64_t stride = 0;  ///< elements from one matrix of a batch to the next
};

enum class Batch { none, strided, pointers };

/// True if there is memory for `count` matrices of `rows` x `columns`, stored by columns; else one line says that
/// `what` of `function` lacks it.
bool check_memory(const char* function, const char* what, const Matrix& matrix, int64_t rows, int64_t columns,
                  Batch batch, int64_t count);

/// True if cublasGemmEx's table of types has the row: computing in `compute`, A and B of type `ab`, C of type `c`.
bool is_multiplied(int compute, int ab, int c);

/// The type of alpha and beta that the table gives such a row.
int scale_type_of(int compute, int c);

/// True if alpha or beta, on the host, is 0.
bool is_zero(const void* scalar, int type);

}  // namespace cuslice::fake
