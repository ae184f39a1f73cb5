// SPDX-License-Identifier: Apache-2.0
// Dumps after an exception on the GPU. None happens here, so that what is said has no effect.

#include <atomic>

#include "fake/driver/api_prologue.h"

using namespace cuslice::fake;

namespace {

std::atomic<bool> on_exception{false};

bool is_setting(CUcoredumpSettings which) {
    return which >= CU_COREDUMP_ENABLE_ON_EXCEPTION && which < CU_COREDUMP_MAX;
}

}  // namespace

CUSLICE_ENTRY(cuCoredumpGetAttributeGlobal, which, value, size) {
    if (size == nullptr || !is_setting(which))
        return CUDA_ERROR_INVALID_VALUE;
    if (which != CU_COREDUMP_ENABLE_ON_EXCEPTION)
        CUSLICE_UNSUPPORTED("cuCoredumpGetAttributeGlobal of CU_COREDUMP_FILE and others");
    if (value != nullptr && *size < sizeof(bool))
        return CUDA_ERROR_INVALID_VALUE;
    *size = sizeof(bool);
    if (value != nullptr)
        *static_cast<bool*>(value) = on_exception;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuCoredumpSetAttributeGlobal, which, value, size) {
    if (size == nullptr || !is_setting(which))
        return CUDA_ERROR_INVALID_VALUE;
    if (which != CU_COREDUMP_ENABLE_ON_EXCEPTION)
        CUSLICE_UNSUPPORTED("cuCoredumpSetAttributeGlobal of CU_COREDUMP_FILE and others");
    if (value == nullptr) {
        *size = sizeof(bool);
        return CUDA_SUCCESS;
    }
    if (*size != sizeof(bool))
        return CUDA_ERROR_INVALID_VALUE;
    on_exception = *static_cast<bool*>(value);
    return CUDA_SUCCESS;
}
