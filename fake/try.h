// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Returns the error of a step that failed, from the function that takes it: CUSLICE_TRY(check_handle(handle)). Success
/// is zero in each of NVIDIA's enumerations.
#define CUSLICE_TRY(...)                                        \
    if (const auto bad = (__VA_ARGS__); bad != decltype(bad){}) \
    return bad
