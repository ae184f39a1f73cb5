// SPDX-License-Identifier: Apache-2.0
// Types and statuses, for cuBLAS and cuBLASLt.

#include "fake/cublas/api.h"

namespace cuslice::fake {
namespace {

struct Status {
    CublasStatus status;
    const char *name, *text;
};

constexpr Status kStatuses[] = {
    {CublasStatus::success, "CUBLAS_STATUS_SUCCESS", "success"},
    {CublasStatus::not_initialized, "CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized"},
    {CublasStatus::alloc_failed, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
    {CublasStatus::invalid_value, "CUBLAS_STATUS_INVALID_VALUE", "an invalid value was used as an argument"},
    {CublasStatus::arch_mismatch, "CUBLAS_STATUS_ARCH_MISMATCH", "an absent device architectural feature is required"},
    {CublasStatus::mapping_error, "CUBLAS_STATUS_MAPPING_ERROR", "an access to GPU memory space failed"},
    {CublasStatus::execution_failed, "CUBLAS_STATUS_EXECUTION_FAILED", "the function failed to launch on the GPU"},
    {CublasStatus::internal_error, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
    {CublasStatus::not_supported, "CUBLAS_STATUS_NOT_SUPPORTED", "the functionality is not supported"},
    {CublasStatus::license_error, "CUBLAS_STATUS_LICENSE_ERROR",
     "the requested functionality requires some license and an error was detected"},
};

const char* find(CublasStatus status, const char* Status::*text) {
    for (const Status& known : kStatuses)
        if (known.status == status)
            return known.*text;
    return nullptr;
}

}  // namespace

size_t element_size(int type) {
    switch (type) {
        case real_8i:
        case real_8f_e4m3:
        case real_8f_e5m2:
            return 1;
        case real_16f:
        case real_16bf:
        case complex_8i:
            return 2;
        case real_32f:
        case real_32i:
            return 4;
        case real_64f:
        case complex_32f:
            return 8;
        case complex_64f:
            return 16;
        default:
            return 0;
    }
}

const char* status_name(CublasStatus status) { return find(status, &Status::name); }

const char* status_text(CublasStatus status) { return find(status, &Status::text); }

}  // namespace cuslice::fake
