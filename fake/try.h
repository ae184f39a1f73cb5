// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Returns the error of a step that failed, from the function that takes it: CUSLICE_TRY(check_handle(handle)). Success
/// is zero in each of NVIDIA's enumerations.
#define CUSLICE_TRY(...)                                        \
    if (const auto bad = (__VA_ARGS__); bad != decltype(bad){}) \
    return bad

/// Declares a pointer and looks up what it points to, or returns the look-up's error:
/// CUSLICE_FIND(Gpu, gpu, find_gpu(device, gpu));
#define CUSLICE_FIND(Type, name, look_up) \
    Type* name = nullptr;                 \
    CUSLICE_TRY(look_up)
