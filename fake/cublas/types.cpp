// Types and statuses, for cuBLAS and cuBLASLt.

#include "fake/cublas/api.h"

namespace cuslice::fake {

std::size_t element_size(int type) {
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

const char* status_name(CublasStatus status) {
    switch (status) {
        case CublasStatus::success:
            return "CUBLAS_STATUS_SUCCESS";
        case CublasStatus::not_initialized:
            return "CUBLAS_STATUS_NOT_INITIALIZED";
        case CublasStatus::alloc_failed:
            return "CUBLAS_STATUS_ALLOC_FAILED";
        case CublasStatus::invalid_value:
            return "CUBLAS_STATUS_INVALID_VALUE";
        case CublasStatus::arch_mismatch:
            return "CUBLAS_STATUS_ARCH_MISMATCH";
        case CublasStatus::mapping_error:
            return "CUBLAS_STATUS_MAPPING_ERROR";
        case CublasStatus::execution_failed:
            return "CUBLAS_STATUS_EXECUTION_FAILED";
        case CublasStatus::internal_error:
            return "CUBLAS_STATUS_INTERNAL_ERROR";
        case CublasStatus::not_supported:
            return "CUBLAS_STATUS_NOT_SUPPORTED";
        case CublasStatus::license_error:
            return "CUBLAS_STATUS_LICENSE_ERROR";
    }
    return nullptr;
}

const char* status_text(CublasStatus status) {
    switch (status) {
        case CublasStatus::success:
            return "success";
        case CublasStatus::not_initialized:
            return "the library was not initialized";
        case CublasStatus::alloc_failed:
            return "the resource allocation failed";
        case CublasStatus::invalid_value:
            return "an invalid value was used as an argument";
        case CublasStatus::arch_mismatch:
            return "an absent device architectural feature is required";
        case CublasStatus::mapping_error:
            return "an access to GPU memory space failed";
        case CublasStatus::execution_failed:
            return "the function failed to launch on the GPU";
        case CublasStatus::internal_error:
            return "an internal operation failed";
        case CublasStatus::not_supported:
            return "the functionality is not supported";
        case CublasStatus::license_error:
            return "the requested functionality requires some license and an error was detected";
    }
    return nullptr;
}

}  // namespace cuslice::fake
