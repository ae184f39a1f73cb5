// SPDX-License-Identifier: Apache-2.0
// Compares the fake libraries' numbers and sizes with NVIDIA's headers, where those are installed.

#include "fake/cublas/api.h"
#include "fake/cublaslt/descriptor.h"
#include "tests/catch.h"
#include "tests/skip.h"

#if __has_include(<cublasLt.h>) && __has_include(<cublas_v2.h>)
#define CUSLICE_HAS_CUBLAS 1
#include <cublasLt.h>
#include <cublas_v2.h>
#endif
#if __has_include(<cudnn.h>)
#define CUSLICE_HAS_CUDNN 1
#include <cudnn.h>
#endif

namespace fake = cuslice::fake;

TEST_CASE("cuBLAS's numbers and sizes are those of NVIDIA's headers") {
#ifdef CUSLICE_HAS_CUBLAS
    CHECK(static_cast<int>(fake::CublasStatus::not_initialized) == CUBLAS_STATUS_NOT_INITIALIZED);
    CHECK(static_cast<int>(fake::CublasStatus::alloc_failed) == CUBLAS_STATUS_ALLOC_FAILED);
    CHECK(static_cast<int>(fake::CublasStatus::invalid_value) == CUBLAS_STATUS_INVALID_VALUE);
    CHECK(static_cast<int>(fake::CublasStatus::arch_mismatch) == CUBLAS_STATUS_ARCH_MISMATCH);
    CHECK(static_cast<int>(fake::CublasStatus::mapping_error) == CUBLAS_STATUS_MAPPING_ERROR);
    CHECK(static_cast<int>(fake::CublasStatus::execution_failed) == CUBLAS_STATUS_EXECUTION_FAILED);
    CHECK(static_cast<int>(fake::CublasStatus::internal_error) == CUBLAS_STATUS_INTERNAL_ERROR);
    CHECK(static_cast<int>(fake::CublasStatus::not_supported) == CUBLAS_STATUS_NOT_SUPPORTED);
    CHECK(static_cast<int>(fake::CublasStatus::license_error) == CUBLAS_STATUS_LICENSE_ERROR);
    CHECK(fake::op_n == static_cast<int>(CUBLAS_OP_N));
    CHECK(fake::op_t == static_cast<int>(CUBLAS_OP_T));
    CHECK(fake::op_c == static_cast<int>(CUBLAS_OP_C));
    CHECK(fake::compute_16f == static_cast<int>(CUBLAS_COMPUTE_16F));
    CHECK(fake::compute_16f_pedantic == static_cast<int>(CUBLAS_COMPUTE_16F_PEDANTIC));
    CHECK(fake::compute_32f == static_cast<int>(CUBLAS_COMPUTE_32F));
    CHECK(fake::compute_32f_pedantic == static_cast<int>(CUBLAS_COMPUTE_32F_PEDANTIC));
    CHECK(fake::compute_32f_fast_16f == static_cast<int>(CUBLAS_COMPUTE_32F_FAST_16F));
    CHECK(fake::compute_32f_fast_16bf == static_cast<int>(CUBLAS_COMPUTE_32F_FAST_16BF));
    CHECK(fake::compute_32f_fast_tf32 == static_cast<int>(CUBLAS_COMPUTE_32F_FAST_TF32));
    CHECK(fake::compute_64f == static_cast<int>(CUBLAS_COMPUTE_64F));
    CHECK(fake::compute_64f_pedantic == static_cast<int>(CUBLAS_COMPUTE_64F_PEDANTIC));
    CHECK(fake::compute_32i == static_cast<int>(CUBLAS_COMPUTE_32I));
    CHECK(fake::compute_32i_pedantic == static_cast<int>(CUBLAS_COMPUTE_32I_PEDANTIC));
    CHECK(fake::real_32f == static_cast<int>(CUDA_R_32F));
    CHECK(fake::real_64f == static_cast<int>(CUDA_R_64F));
    CHECK(fake::real_16f == static_cast<int>(CUDA_R_16F));
    CHECK(fake::real_8i == static_cast<int>(CUDA_R_8I));
    CHECK(fake::complex_32f == static_cast<int>(CUDA_C_32F));
    CHECK(fake::complex_64f == static_cast<int>(CUDA_C_64F));
    CHECK(fake::complex_8i == static_cast<int>(CUDA_C_8I));
    CHECK(fake::real_32i == static_cast<int>(CUDA_R_32I));
    CHECK(fake::real_16bf == static_cast<int>(CUDA_R_16BF));
    CHECK(fake::real_8f_e4m3 == static_cast<int>(CUDA_R_8F_E4M3));
    CHECK(fake::real_8f_e5m2 == static_cast<int>(CUDA_R_8F_E5M2));
    CHECK(fake::major_version == static_cast<int>(MAJOR_VERSION));
    CHECK(fake::patch_level == static_cast<int>(PATCH_LEVEL));
    CHECK(sizeof(fake::MatmulDescriptor) <= sizeof(cublasLtMatmulDescOpaque_t));
    CHECK(sizeof(fake::LayoutDescriptor) <= sizeof(cublasLtMatrixLayoutOpaque_t));
    CHECK(sizeof(fake::PreferenceDescriptor) <= sizeof(cublasLtMatmulPreferenceOpaque_t));
    CHECK(sizeof(fake::Algorithm) == sizeof(cublasLtMatmulAlgo_t));
    CHECK(sizeof(fake::HeuristicResult) == sizeof(cublasLtMatmulHeuristicResult_t));
    CHECK(offsetof(fake::HeuristicResult, workspace) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
    CHECK(offsetof(fake::HeuristicResult, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));
    CHECK(offsetof(fake::HeuristicResult, waves) == offsetof(cublasLtMatmulHeuristicResult_t, wavesCount));
    CHECK(fake::epilogue_bias == static_cast<unsigned>(CUBLASLT_EPILOGUE_BIAS));
    CHECK(fake::epilogue_bias_gradient_b == static_cast<unsigned>(CUBLASLT_EPILOGUE_BGRADB));
    CHECK((fake::epilogue_drelu | fake::epilogue_aux | fake::epilogue_bias_gradient) ==
          static_cast<unsigned>(CUBLASLT_EPILOGUE_DRELU_BGRAD));
    CHECK(fake::order_rows == static_cast<int>(CUBLASLT_ORDER_ROW));
#else
    cuslice::tests::skip("NVIDIA's cublas_v2.h and cublasLt.h are not installed");
#endif
}

TEST_CASE("cuDNN's statuses are those of NVIDIA's headers") {
#ifdef CUSLICE_HAS_CUDNN
#define CUSLICE_CUDNN_STATUS(name, value) CHECK(static_cast<int>(name) == (value));
#include "fake/cudnn/statuses.def"
#else
    cuslice::tests::skip("NVIDIA's cudnn.h is not installed");
#endif
}
