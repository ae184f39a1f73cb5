// SPDX-License-Identifier: Apache-2.0
// The checks of cublas<t>gemm and its kin, and the launch that stands for one.

#include "fake/cublas/multiply.h"

#include "fake/cublas/status.h"
#include "fake/libraries/gpu_work.h"

#include <algorithm>

namespace cuslice::fake {
namespace {

CublasStatus check_numbers(const Multiplication& work) {
    const auto least = [](int64_t rows) { return std::max<int64_t>(1, rows); };
    const bool good = work.m >= 0 && work.n >= 0 && work.k >= 0 && work.count >= 0 && is_operation(work.op_a) &&
                      is_operation(work.op_b) && work.a.ld >= least(work.op_a == op_n ? work.m : work.k) &&
                      work.b.ld >= least(work.op_b == op_n ? work.k : work.n) && work.c.ld >= least(work.m) &&
                      work.alpha != nullptr && work.beta != nullptr;
    return good ? CublasStatus::success : CublasStatus::invalid_value;
}

}  // namespace

CublasStatus multiply(CublasHandle* handle, const Multiplication& work) {
    CUSLICE_TRY(check_handle(handle));
    CUSLICE_TRY(check_numbers(work));
    if (work.m == 0 || work.n == 0 || work.count == 0)
        return CublasStatus::success;
    const bool a_is_n = work.op_a == op_n;
    const bool b_is_n = work.op_b == op_n;
    // BLAS doesn't read A and B where alpha is 0. A scalar that lies on the GPU isn't looked at.
    const bool reads = work.k > 0 && !(handle->pointer_mode == 0 && is_zero(work.alpha, work.scale_type));
    if (reads && (!check_memory(work.function, "A", work.a, a_is_n ? work.m : work.k, a_is_n ? work.k : work.m,
                                work.batch, work.count) ||
                  !check_memory(work.function, "B", work.b, b_is_n ? work.k : work.n, b_is_n ? work.n : work.k,
                                work.batch, work.count))) {
        return CublasStatus::execution_failed;
    }
    if (!check_memory(work.function, "C", work.c, work.m, work.n, work.batch, work.count)) {
        return CublasStatus::execution_failed;
    }
    return launch_status(launch_kernel(handle->stream));
}

}  // namespace cuslice::fake
