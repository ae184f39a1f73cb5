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

/// Declares a pointer and looks up what it points to, or returns the look-up's error:
/// CUSLICE_FIND(Context, context, current_context(context));
#define CUSLICE_FIND(Type, name, look_up) \
    Type* name = nullptr;                 \
    if (const CUresult bad = (look_up); bad != CUDA_SUCCESS) return bad
