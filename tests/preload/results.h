// SPDX-License-Identifier: Apache-2.0
// CUDA's and NVML's results, as numbers: a guest answers with them.
#pragma once

#define __CUDA_API_VERSION_INTERNAL  // as virtual_gpu/driver/cuda_api.h has it, which tests may include as well
#include <cuda.h>
#include <nvml.h>

namespace cuslice::tests {

constexpr int kSuccess = CUDA_SUCCESS;  // also NVML's
static_assert(int{NVML_SUCCESS} == kSuccess);
constexpr int kInvalidValue = CUDA_ERROR_INVALID_VALUE;
constexpr int kOutOfMemory = CUDA_ERROR_OUT_OF_MEMORY;
constexpr int kNotInitialized = CUDA_ERROR_NOT_INITIALIZED;
constexpr int kNoDevice = CUDA_ERROR_NO_DEVICE;
constexpr int kInvalidDevice = CUDA_ERROR_INVALID_DEVICE;
constexpr int kInvalidContext = CUDA_ERROR_INVALID_CONTEXT;
constexpr int kInvalidHandle = CUDA_ERROR_INVALID_HANDLE;
constexpr int kIllegalState = CUDA_ERROR_ILLEGAL_STATE;
constexpr int kLaunchFailed = CUDA_ERROR_LAUNCH_FAILED;
constexpr int kNotSupported = CUDA_ERROR_NOT_SUPPORTED;
constexpr int kStreamCaptureUnsupported = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
constexpr int kStreamCaptureInvalidated = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
constexpr int kUnknown = CUDA_ERROR_UNKNOWN;

constexpr int kNvmlUninitialized = NVML_ERROR_UNINITIALIZED;
constexpr int kNvmlLibraryNotFound = NVML_ERROR_LIBRARY_NOT_FOUND;

}  // namespace cuslice::tests
