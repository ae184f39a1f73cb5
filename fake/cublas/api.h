// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of cuBLAS's interface that the fake's cuBLAS and cuBLASLt need, with values from cublas_api.h and
// library_types.h of CUDA 13.0 (tests/fake/libraries/headers_test.cpp compares them). Pointers to numbers are void
// here: the calling convention is the same.

#include <cstddef>
#include <cstdint>

#include "fake/try.h"

namespace cuslice::fake {

/// cublasStatus_t
enum class CublasStatus : int {
    success = 0,
    not_initialized = 1,
    alloc_failed = 3,
    invalid_value = 7,
    arch_mismatch = 8,
    mapping_error = 11,
    execution_failed = 13,
    internal_error = 14,
    not_supported = 15,
    license_error = 16,
};

/// cublasOperation_t, without CUBLAS_OP_CONJG, which cublas_api.h calls not supported
enum Operation : int { op_n = 0, op_t = 1, op_c = 2 };

constexpr bool is_operation(int op) { return op == op_n || op == op_t || op == op_c; }

/// cublasComputeType_t
enum ComputeType : int {
    compute_16f = 64,
    compute_16f_pedantic = 65,
    compute_32f = 68,
    compute_32f_pedantic = 69,
    compute_64f = 70,
    compute_64f_pedantic = 71,
    compute_32i = 72,
    compute_32i_pedantic = 73,
    compute_32f_fast_16f = 74,
    compute_32f_fast_16bf = 75,
    compute_32f_fast_tf32 = 77,
    compute_32f_emulated_16bfx9 = 78,
    compute_64f_emulated_fixedpoint = 79,
};

/// cudaDataType_t, as far as matrices have it
enum DataType : int {
    real_32f = 0,
    real_64f = 1,
    real_16f = 2,
    real_8i = 3,
    complex_32f = 4,
    complex_64f = 5,
    complex_8i = 7,
    real_32i = 10,
    real_16bf = 14,
    real_8f_e4m3 = 28,
    real_8f_e5m2 = 29,
};

/// libraryPropertyType_t
enum Property : int { major_version = 0, minor_version = 1, patch_level = 2 };

/// The bytes of one element; 0 for a type that no matrix here has.
size_t element_size(int type);

/// "CUBLAS_STATUS_SUCCESS" and so on; null for what is no status.
const char* status_name(CublasStatus status);
/// The same in words.
const char* status_text(CublasStatus status);

/// Version of this cuBLAS: the release of cuBLAS 11, 12 or 13 (CUSLICE_CUBLAS_MAJOR) whose names exports.def lists.
struct LibraryVersion {
    int major, minor, patch, cudart;
};
#ifdef CUSLICE_CUBLAS_MAJOR
#if CUSLICE_CUBLAS_MAJOR == 11
inline constexpr LibraryVersion kLibraryVersion{11, 11, 3, 11080};
#elif CUSLICE_CUBLAS_MAJOR == 12
inline constexpr LibraryVersion kLibraryVersion{12, 9, 3, 12090};
#else
inline constexpr LibraryVersion kLibraryVersion{13, 4, 1, 13020};
#endif
// cublas_api.h: CUBLAS_VERSION
inline constexpr int kVersionNumber =
    kLibraryVersion.major * 10000 + kLibraryVersion.minor * 100 + kLibraryVersion.patch;

/// The answer of cublasGetProperty and cublasLtGetProperty.
inline CublasStatus library_property(int property, int* value) {
    constexpr int kNumbers[] = {kLibraryVersion.major, kLibraryVersion.minor, kLibraryVersion.patch};
    if (value == nullptr || property < major_version || property > patch_level)
        return CublasStatus::invalid_value;
    *value = kNumbers[property];
    return CublasStatus::success;
}
#endif

}  // namespace cuslice::fake
