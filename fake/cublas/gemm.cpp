// cublas<t>gemm and its batched forms, each for 32-bit and 64-bit integers.

#include "fake/cublas/multiply.h"

using namespace cuslice::fake;

// letter: of the function; type: of matrices and scalars; suffix: _64 or nothing; version: _v2 or nothing
#define CUSLICE_GEMM(letter, type, version, integer, suffix)                                                          \
    CublasStatus cublas##letter##gemm##version##suffix(                                                               \
        CublasHandle* handle, int op_a, int op_b, integer m, integer n, integer k, const void* alpha, const void* a,  \
        integer lda, const void* b, integer ldb, const void* beta, void* c, integer ldc) {                            \
        return multiply(handle, {"cublas" #letter "gemm" #version #suffix,                                            \
                                 op_a,                                                                                \
                                 op_b,                                                                                \
                                 m,                                                                                   \
                                 n,                                                                                   \
                                 k,                                                                                   \
                                 alpha,                                                                               \
                                 {a, lda, type},                                                                      \
                                 {b, ldb, type},                                                                      \
                                 beta,                                                                                \
                                 {c, ldc, type},                                                                      \
                                 type});                                                                              \
    }                                                                                                                 \
    CublasStatus cublas##letter##gemmBatched##suffix(CublasHandle* handle, int op_a, int op_b, integer m, integer n,  \
                                                     integer k, const void* alpha, const void* const* a, integer lda, \
                                                     const void* const* b, integer ldb, const void* beta,             \
                                                     void* const* c, integer ldc, integer count) {                    \
        return multiply(handle, {"cublas" #letter "gemmBatched" #suffix,                                              \
                                 op_a,                                                                                \
                                 op_b,                                                                                \
                                 m,                                                                                   \
                                 n,                                                                                   \
                                 k,                                                                                   \
                                 alpha,                                                                               \
                                 {a, lda, type},                                                                      \
                                 {b, ldb, type},                                                                      \
                                 beta,                                                                                \
                                 {c, ldc, type},                                                                      \
                                 type,                                                                                \
                                 Batch::pointers,                                                                     \
                                 count});                                                                             \
    }                                                                                                                 \
    CublasStatus cublas##letter##gemmStridedBatched##suffix(                                                          \
        CublasHandle* handle, int op_a, int op_b, integer m, integer n, integer k, const void* alpha, const void* a,  \
        integer lda, long long stride_a, const void* b, integer ldb, long long stride_b, const void* beta, void* c,   \
        integer ldc, long long stride_c, integer count) {                                                             \
        return multiply(handle, {"cublas" #letter "gemmStridedBatched" #suffix,                                       \
                                 op_a,                                                                                \
                                 op_b,                                                                                \
                                 m,                                                                                   \
                                 n,                                                                                   \
                                 k,                                                                                   \
                                 alpha,                                                                               \
                                 {a, lda, type, stride_a},                                                            \
                                 {b, ldb, type, stride_b},                                                            \
                                 beta,                                                                                \
                                 {c, ldc, type, stride_c},                                                            \
                                 type,                                                                                \
                                 Batch::strided,                                                                      \
                                 count});                                                                             \
    }

extern "C" {
CUSLICE_GEMM(S, real_32f, _v2, int, )
CUSLICE_GEMM(D, real_64f, _v2, int, )
CUSLICE_GEMM(C, complex_32f, _v2, int, )
CUSLICE_GEMM(Z, complex_64f, _v2, int, )
CUSLICE_GEMM(H, real_16f, , int, )
CUSLICE_GEMM(S, real_32f, _v2, std::int64_t, _64)
CUSLICE_GEMM(D, real_64f, _v2, std::int64_t, _64)
CUSLICE_GEMM(C, complex_32f, _v2, std::int64_t, _64)
CUSLICE_GEMM(Z, complex_64f, _v2, std::int64_t, _64)
CUSLICE_GEMM(H, real_16f, , std::int64_t, _64)
}
