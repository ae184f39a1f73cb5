// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fake/cublas/api.h"
#include "fake/units.h"

#include <cuda.h>

namespace cuslice::fake {

inline constexpr uint64_t kCublasMark = 0x736c6275636b6166;

/// Object behind a cublasHandle_t.
struct CublasHandle {
    uint64_t mark;  ///< kCublasMark; first, as cuBLASLt takes these handles too
    CublasHandle* next;
    CUcontext context;      ///< current when it was made
    CUdeviceptr workspace;  ///< the library's own
    CUstream stream;
    int pointer_mode;
    int math_mode;
    int atomics_mode;
    int multiprocessors;
    int emulation;
};

/// CUBLAS_STATUS_NOT_INITIALIZED: it isn't one, or not any more.
CublasStatus check_handle(const CublasHandle* handle);

/// Bytes of the GPU's memory that cublasCreate takes for its workspace, by the compute capability (90 is 9.0): the
/// size that cuBLAS's manual recommends for cublasSetWorkspace. On an H200 NVIDIA's cublasCreate takes 68 MiB in all.
constexpr size_t workspace_size(int architecture) {
    if (architecture >= 120)
        return 12 * kMiB;
    return architecture >= 90 ? 32 * kMiB : 4 * kMiB;
}

}  // namespace cuslice::fake
