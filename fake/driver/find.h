// SPDX-License-Identifier: Apache-2.0
#pragma once
// Look-ups that return an error or set a pointer, and how a function goes on with what they find.

#include "fake/driver/cuda_api.h"
#include "fake/try.h"

/// Declares a pointer to the live object behind a handle from the program, or returns CUDA_ERROR_INVALID_HANDLE:
/// CUSLICE_FIND_IN(module, modules, handle);
#define CUSLICE_FIND_IN(name, table, handle) \
    auto* name = (table).find(handle);       \
    if (name == nullptr)                     \
    return CUDA_ERROR_INVALID_HANDLE

/// The same where a handle that is none is a wrong argument like any other: CUDA_ERROR_INVALID_VALUE.
#define CUSLICE_FIND_ARGUMENT(name, table, handle) \
    auto* name = (table).find(handle);             \
    if (name == nullptr)                           \
    return CUDA_ERROR_INVALID_VALUE
