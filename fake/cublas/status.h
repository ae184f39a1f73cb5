// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fake/cublas/api.h"

#include <cuda.h>

namespace cuslice::fake {

/// The status of a driver's error where a handle is made: cuBLAS's manual names NOT_INITIALIZED for whatever CUDA
/// lacks.
inline CublasStatus create_status(CUresult result) {
    if (result == CUDA_SUCCESS)
        return CublasStatus::success;
    return result == CUDA_ERROR_OUT_OF_MEMORY ? CublasStatus::alloc_failed : CublasStatus::not_initialized;
}

/// The status of a driver's error at a launch.
inline CublasStatus launch_status(CUresult result) {
    switch (result) {
        case CUDA_SUCCESS:
            return CublasStatus::success;
        case CUDA_ERROR_NOT_SUPPORTED:
            return CublasStatus::not_supported;
        case CUDA_ERROR_OUT_OF_MEMORY:
            return CublasStatus::alloc_failed;
        default:
            return CublasStatus::execution_failed;
    }
}

}  // namespace cuslice::fake
