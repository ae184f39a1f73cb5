// SPDX-License-Identifier: Apache-2.0
// cuBLAS's helper functions: handles and what is set in them.

#include "fake/cublas/handle.h"

#include "fake/cublas/status.h"
#include "fake/libraries/gpu_work.h"
#include "fake/libraries/live_handles.h"
#include "fake/runtime/driver.h"

namespace cuslice::fake {
namespace {

constinit LiveHandles<CublasHandle> handles;

// cublas_api.h: CUBLAS_DEFAULT_MATH to CUBLAS_FP64_EMULATED_FIXEDPOINT_MATH, and the flag
// CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION.
constexpr int kReductionFlag = 16;
bool is_math_mode(int mode) {
    const int plain = mode & ~kReductionFlag;
    return (plain >= 0 && plain <= 4) || plain == 8;
}

/// The frame of the functions that set one number in a handle.
CublasStatus set(CublasHandle* handle, int CublasHandle::*field, int value, bool good) {
    CUSLICE_TRY(check_handle(handle));
    if (!good)
        return CublasStatus::invalid_value;
    handle->*field = value;
    return CublasStatus::success;
}

CublasStatus get(const CublasHandle* handle, int CublasHandle::*field, int* value) {
    CUSLICE_TRY(check_handle(handle));
    if (value == nullptr)
        return CublasStatus::invalid_value;
    *value = handle->*field;
    return CublasStatus::success;
}

}  // namespace

CublasStatus check_handle(const CublasHandle* handle) {
    return handle != nullptr && handles.has(handle) ? CublasStatus::success : CublasStatus::not_initialized;
}

}  // namespace cuslice::fake

using namespace cuslice::fake;

/// cublasSet<what> and cublasGet<what> for a number in the handle; `good` says which values there are.
#define CUSLICE_SETTING(what, field, good)                          \
    CublasStatus cublasSet##what(CublasHandle* handle, int value) { \
        return set(handle, &CublasHandle::field, value, good);      \
    }                                                               \
    CublasStatus cublasGet##what(CublasHandle* handle, int* value) { return get(handle, &CublasHandle::field, value); }

extern "C" {

CublasStatus cublasCreate_v2(CublasHandle** out) {
    if (out == nullptr)
        return CublasStatus::invalid_value;
    *out = nullptr;
    CUcontext context = nullptr;
    CUSLICE_TRY(create_status(load_kernel()));
    CUSLICE_TRY(create_status(CU(cuCtxGetCurrent, 4000)(&context)));
    CUdeviceptr workspace = 0;
    CUSLICE_TRY(create_status(CU(cuMemAlloc, 3020)(&workspace, workspace_size(current_architecture()))));
    CublasHandle* handle = handles.create();
    if (handle == nullptr) {
        CU(cuMemFree, 3020)(workspace);
        return CublasStatus::alloc_failed;
    }
    handle->mark = kCublasMark;
    handle->context = context;
    handle->workspace = workspace;
    *out = handle;
    return CublasStatus::success;
}

CublasStatus cublasDestroy_v2(CublasHandle* handle) {
    CUSLICE_TRY(check_handle(handle));
    const CUdeviceptr workspace = handle->workspace;
    const CUcontext context = handle->context;
    handle->mark = 0;
    if (!handles.destroy(handle))
        return CublasStatus::not_initialized;
    // The free waits for the device, as the manual says of this function. A context that has ended took the memory
    // along.
    if (CU(cuCtxPushCurrent, 4000)(context) == CUDA_SUCCESS) {
        CUcontext popped = nullptr;
        CU(cuMemFree, 3020)(workspace);
        CU(cuCtxPopCurrent, 4000)(&popped);
    }
    return CublasStatus::success;
}

CublasStatus cublasGetVersion_v2(CublasHandle* handle, int* version) {
    // cublasGetVersion is documented to take a null handle.
    if (handle != nullptr) {
        CUSLICE_TRY(check_handle(handle));
    }
    if (version == nullptr)
        return CublasStatus::invalid_value;
    *version = kVersionNumber;
    return CublasStatus::success;
}

CublasStatus cublasGetProperty(int property, int* value) { return library_property(property, value); }

size_t cublasGetCudartVersion() { return kLibraryVersion.cudart; }

const char* cublasGetStatusName(CublasStatus status) { return status_name(status); }

const char* cublasGetStatusString(CublasStatus status) { return status_text(status); }

CublasStatus cublasSetStream_v2(CublasHandle* handle, CUstream stream) {
    CUSLICE_TRY(check_handle(handle));
    handle->stream = stream;
    return CublasStatus::success;
}

CublasStatus cublasGetStream_v2(CublasHandle* handle, CUstream* stream) {
    CUSLICE_TRY(check_handle(handle));
    if (stream == nullptr)
        return CublasStatus::invalid_value;
    *stream = handle->stream;
    return CublasStatus::success;
}

CublasStatus cublasSetWorkspace_v2(CublasHandle* handle, void* workspace, size_t bytes) {
    CUSLICE_TRY(check_handle(handle));
    // "The workspace pointer must be aligned to at least 256 bytes"
    if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0)
        return CublasStatus::invalid_value;
    if (workspace != nullptr && !memory_is_there(workspace, bytes))
        return CublasStatus::invalid_value;
    return CublasStatus::success;
}

CUSLICE_SETTING(PointerMode_v2, pointer_mode, value == 0 || value == 1)
CUSLICE_SETTING(AtomicsMode, atomics_mode, value == 0 || value == 1)
CUSLICE_SETTING(MathMode, math_mode, is_math_mode(value))
CUSLICE_SETTING(SmCountTarget, multiprocessors, value >= 0)
CUSLICE_SETTING(EmulationStrategy, emulation, value >= 0 && value <= 2)

}  // extern "C"
