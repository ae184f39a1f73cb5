// SPDX-License-Identifier: Apache-2.0
// cuDNN's handles, and what the library says of itself. All that computes is refused by name:
// fake/libraries/refused.cpp.

#include "fake/libraries/gpu_work.h"
#include "fake/libraries/live_handles.h"
#include "fake/try.h"

#include <cstddef>

namespace cuslice::fake {
namespace {

/// cudnnStatus_t
enum class CudnnStatus : int {
#define CUSLICE_CUDNN_STATUS(name, value) name = value,
#include "fake/cudnn/statuses.def"
#undef CUSLICE_CUDNN_STATUS
};
using enum CudnnStatus;

/// Object behind a cudnnHandle_t.
struct CudnnHandle {
    CudnnHandle* next;
    CUstream stream;
};

constinit LiveHandles<CudnnHandle> handles;

// The release whose names exports.def lists, for CUDA 12: libcudnn.so.9 has one name for CUDA 12 and 13.
constexpr int kMajor = 9, kMinor = 28, kPatch = 0;
constexpr size_t kCudartVersion = 12090;

CudnnStatus create_status(CUresult result) {
    switch (result) {
        case CUDA_SUCCESS:
            return CUDNN_STATUS_SUCCESS;
        case CUDA_ERROR_OUT_OF_MEMORY:
            return CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
        default:
            return CUDNN_STATUS_NOT_INITIALIZED;
    }
}

}  // namespace
}  // namespace cuslice::fake

using namespace cuslice::fake;

extern "C" {

CudnnStatus cudnnCreate(CudnnHandle** out) {
    if (out == nullptr)
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    *out = nullptr;
    CUSLICE_TRY(create_status(load_kernel()));
    CudnnHandle* handle = handles.create();
    if (handle == nullptr)
        return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    *out = handle;
    return CUDNN_STATUS_SUCCESS;
}

CudnnStatus cudnnDestroy(CudnnHandle* handle) {
    return handles.destroy(handle) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_INITIALIZED;
}

CudnnStatus cudnnSetStream(CudnnHandle* handle, CUstream stream) {
    if (!handles.has(handle))
        return CUDNN_STATUS_BAD_PARAM;
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

CudnnStatus cudnnGetStream(CudnnHandle* handle, CUstream* stream) {
    if (!handles.has(handle) || stream == nullptr)
        return CUDNN_STATUS_BAD_PARAM;
    *stream = handle->stream;
    return CUDNN_STATUS_SUCCESS;
}

// cudnn_version.h: CUDNN_VERSION
size_t cudnnGetVersion() { return kMajor * 10000 + kMinor * 100 + kPatch; }

size_t cudnnGetCudartVersion() { return kCudartVersion; }

CudnnStatus cudnnGetProperty(int property, int* value) {
    // libraryPropertyType_t
    constexpr int kNumbers[] = {kMajor, kMinor, kPatch};
    if (value == nullptr || property < 0 || property > 2)
        return CUDNN_STATUS_BAD_PARAM;
    *value = kNumbers[property];
    return CUDNN_STATUS_SUCCESS;
}

const char* cudnnGetErrorString(CudnnStatus status) {
    switch (status) {
#define CUSLICE_CUDNN_STATUS(name, value) \
    case CudnnStatus::name:               \
        return #name;
#include "fake/cudnn/statuses.def"
#undef CUSLICE_CUDNN_STATUS
    }
    return "CUDNN_UNKNOWN_STATUS";
}

void cudnnGetLastErrorString(char* message, size_t size) {
    if (message != nullptr && size > 0)
        *message = '\0';  // no more is known than the line on stderr says
}

}  // extern "C"
