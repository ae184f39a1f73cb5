// SPDX-License-Identifier: Apache-2.0
#pragma once
// Look-ups that return an error or set a pointer, and how a function goes on with what they find.

#include "fake/driver/cuda_api.h"

namespace cuslice::fake {

/// The live object behind a handle from the program; CUDA_ERROR_INVALID_HANDLE if there is none.
template <typename Table, typename Public, typename Object>
CUresult find_in(const Table& table, Public handle, Object*& object) {
    object = table.find(handle);
    return object == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

}  // namespace cuslice::fake

/// Returns the error of a step that failed, from the function that takes it: CUSLICE_TRY(refuse_in_capture(*stream));
#define CUSLICE_TRY(...) \
    if (const CUresult bad = (__VA_ARGS__); bad != CUDA_SUCCESS) return bad

/// Declares a pointer and looks up what it points to, or returns the look-up's error:
/// CUSLICE_FIND(Gpu, gpu, find_gpu(device, gpu));
#define CUSLICE_FIND(Type, name, look_up) \
    Type* name = nullptr;                 \
    CUSLICE_TRY(look_up)
