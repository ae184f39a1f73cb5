// SPDX-License-Identifier: Apache-2.0
// cublas<t>gemv, for 32-bit and 64-bit integers.

#include "fake/cublas/status.h"
#include "fake/cublas/typed.h"
#include "fake/libraries/gpu_work.h"

#include <algorithm>

using namespace cuslice::fake;

namespace {

struct VectorWork {
    const char* function;
    int op;
    int64_t m, n;
    const void* alpha;
    Matrix a;
    const void* x;
    int64_t x_step;
    const void* beta;
    const void* y;
    int64_t y_step;
};

/// A vector is a matrix of one row; the order of a negative step is the other way round, over the same elements.
Matrix as_row(const void* address, int64_t step, int type) { return {address, step < 0 ? -step : step, type}; }

CublasStatus multiply_vector(CublasHandle* handle, const VectorWork& work) {
    CUSLICE_TRY(check_handle(handle));
    const bool good = work.m >= 0 && work.n >= 0 && is_operation(work.op) &&
                      work.a.ld >= std::max<int64_t>(1, work.m) && work.x_step != 0 && work.y_step != 0 &&
                      work.alpha != nullptr && work.beta != nullptr;
    if (!good)
        return CublasStatus::invalid_value;
    if (work.m == 0 || work.n == 0)
        return CublasStatus::success;
    const bool plain = work.op == op_n;
    const int type = work.a.type;
    const bool there =
        check_memory(work.function, "A", work.a, work.m, work.n, Batch::none, 1) &&
        check_memory(work.function, "x", as_row(work.x, work.x_step, type), 1, plain ? work.n : work.m, Batch::none,
                     1) &&
        check_memory(work.function, "y", as_row(work.y, work.y_step, type), 1, plain ? work.m : work.n, Batch::none, 1);
    return there ? launch_status(launch_kernel(handle->stream)) : CublasStatus::execution_failed;
}

}  // namespace

#define CUSLICE_GEMV(integer, suffix, letter, type)                                                             \
    CublasStatus cublas##letter##gemv_v2##suffix(CublasHandle* handle, int op, integer m, integer n,            \
                                                 const void* alpha, const void* a, integer lda, const void* x,  \
                                                 integer x_step, const void* beta, void* y, integer y_step) {   \
        return multiply_vector(                                                                                 \
            handle,                                                                                             \
            {"cublas" #letter "gemv_v2" #suffix, op, m, n, alpha, {a, lda, type}, x, x_step, beta, y, y_step}); \
    }

extern "C" {
CUSLICE_BLAS_TYPES(CUSLICE_GEMV)
}
