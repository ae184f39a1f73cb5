// SPDX-License-Identifier: Apache-2.0
#pragma once
// A multiplication C = alpha op(A) op(B) + beta C, as cuBLAS's manual has it.

#include "fake/cublas/handle.h"
#include "fake/cublas/matrix.h"

namespace cuslice::fake {

struct Multiplication {
    const char* function;
    int op_a, op_b;
    int64_t m, n, k;
    const void* alpha;
    Matrix a, b;
    const void* beta;
    Matrix c;
    int scale_type;  ///< of alpha and beta
    Batch batch = Batch::none;
    int64_t count = 1;
};

/// Checks it, and launches what stands for it in the handle's stream.
CublasStatus multiply(CublasHandle* handle, const Multiplication& work);

}  // namespace cuslice::fake
