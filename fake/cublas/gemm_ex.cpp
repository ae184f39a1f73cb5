// cublasGemmEx and its batched forms, whose types are arguments, each for 32-bit and 64-bit integers.

#include "fake/cublas/multiply.h"

using namespace cuslice::fake;

namespace {

// cublasGemmAlgo_t: CUBLAS_GEMM_DEFAULT, ALGO0 to ALGO23, the same for tensor cores, CUBLAS_GEMM_AUTOTUNE
bool is_algorithm(int algorithm) {
    return (algorithm >= -1 && algorithm <= 23) || (algorithm >= 99 && algorithm <= 115) || algorithm == 999;
}

CublasStatus multiply_types(CublasHandle* handle, Multiplication work, int compute, int algorithm) {
    if (const CublasStatus bad = check_handle(handle); bad != CublasStatus::success) return bad;
    if (!is_algorithm(algorithm)) return CublasStatus::invalid_value;
    if (work.a.type != work.b.type || !is_multiplied(compute, work.a.type, work.c.type))
        return CublasStatus::not_supported;
    work.scale_type = scale_type_of(compute, work.c.type);
    return multiply(handle, work);
}

}  // namespace

#define CUSLICE_GEMM_EX(integer, suffix)                                                                              \
    CublasStatus cublasGemmEx##suffix(CublasHandle* handle, int op_a, int op_b, integer m, integer n, integer k,      \
                                      const void* alpha, const void* a, int a_type, integer lda, const void* b,       \
                                      int b_type, integer ldb, const void* beta, void* c, int c_type, integer ldc,    \
                                      int compute, int algorithm) {                                                   \
        return multiply_types(handle,                                                                                 \
                              {"cublasGemmEx" #suffix,                                                                \
                               op_a,                                                                                  \
                               op_b,                                                                                  \
                               m,                                                                                     \
                               n,                                                                                     \
                               k,                                                                                     \
                               alpha,                                                                                 \
                               {a, lda, a_type},                                                                      \
                               {b, ldb, b_type},                                                                      \
                               beta,                                                                                  \
                               {c, ldc, c_type},                                                                      \
                               c_type},                                                                               \
                              compute, algorithm);                                                                    \
    }                                                                                                                 \
    CublasStatus cublasGemmBatchedEx##suffix(                                                                         \
        CublasHandle* handle, int op_a, int op_b, integer m, integer n, integer k, const void* alpha,                 \
        const void* const* a, int a_type, integer lda, const void* const* b, int b_type, integer ldb,                 \
        const void* beta, void* const* c, int c_type, integer ldc, integer count, int compute, int algorithm) {       \
        return multiply_types(handle,                                                                                 \
                              {"cublasGemmBatchedEx" #suffix,                                                         \
                               op_a,                                                                                  \
                               op_b,                                                                                  \
                               m,                                                                                     \
                               n,                                                                                     \
                               k,                                                                                     \
                               alpha,                                                                                 \
                               {a, lda, a_type},                                                                      \
                               {b, ldb, b_type},                                                                      \
                               beta,                                                                                  \
                               {c, ldc, c_type},                                                                      \
                               c_type,                                                                                \
                               Batch::pointers,                                                                       \
                               count},                                                                                \
                              compute, algorithm);                                                                    \
    }                                                                                                                 \
    CublasStatus cublasGemmStridedBatchedEx##suffix(                                                                  \
        CublasHandle* handle, int op_a, int op_b, integer m, integer n, integer k, const void* alpha, const void* a,  \
        int a_type, integer lda, long long stride_a, const void* b, int b_type, integer ldb, long long stride_b,      \
        const void* beta, void* c, int c_type, integer ldc, long long stride_c, integer count, int compute,           \
        int algorithm) {                                                                                              \
        return multiply_types(handle,                                                                                 \
                              {"cublasGemmStridedBatchedEx" #suffix,                                                  \
                               op_a,                                                                                  \
                               op_b,                                                                                  \
                               m,                                                                                     \
                               n,                                                                                     \
                               k,                                                                                     \
                               alpha,                                                                                 \
                               {a, lda, a_type, stride_a},                                                            \
                               {b, ldb, b_type, stride_b},                                                            \
                               beta,                                                                                  \
                               {c, ldc, c_type, stride_c},                                                            \
                               c_type,                                                                                \
                               Batch::strided,                                                                        \
                               count},                                                                                \
                              compute, algorithm);                                                                    \
    }                                                                                                                 \
    CublasStatus cublasSgemmEx##suffix(CublasHandle* handle, int op_a, int op_b, integer m, integer n, integer k,     \
                                       const void* alpha, const void* a, int a_type, integer lda, const void* b,      \
                                       int b_type, integer ldb, const void* beta, void* c, int c_type, integer ldc) { \
        return multiply_types(handle,                                                                                 \
                              {"cublasSgemmEx" #suffix,                                                               \
                               op_a,                                                                                  \
                               op_b,                                                                                  \
                               m,                                                                                     \
                               n,                                                                                     \
                               k,                                                                                     \
                               alpha,                                                                                 \
                               {a, lda, a_type},                                                                      \
                               {b, ldb, b_type},                                                                      \
                               beta,                                                                                  \
                               {c, ldc, c_type},                                                                      \
                               c_type},                                                                               \
                              compute_32f, -1);                                                                       \
    }

extern "C" {
CUSLICE_GEMM_EX(int, )
CUSLICE_GEMM_EX(std::int64_t, _64)
}
