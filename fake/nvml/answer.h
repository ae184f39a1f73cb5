// SPDX-License-Identifier: Apache-2.0
#pragma once
// The steps that nearly every function here has.
//
// NVIDIA's library is not linked -Bsymbolic: it calls its own functions through their exported names, so that whoever
// is first in the loader's scope stands in its way. This one does the same (CMakeLists.txt), wherever one function of
// NVML's is made of another: older forms of the newer ones, look-ups of the enumeration, errors of nvmlErrorString.

#include "fake/nvml/state.h"
#include "fake/try.h"

namespace cuslice::fake {

/// Last step of NVML's functions: looks up the text of an error for the log.
inline nvmlReturn_t answered(nvmlReturn_t result) {
    if (result != NVML_SUCCESS)
        ::nvmlErrorString(result);
    return result;
}

/// Calls f(device) for a good handle and a place for the answer; else says what is wrong.
template <typename F>
nvmlReturn_t with_device(nvmlDevice_t handle, const void* out, F&& f) {
    CUSLICE_FIND(NvmlDevice, device, answered(nvml_state().find(handle, device)));
    return answered(out == nullptr ? NVML_ERROR_INVALID_ARGUMENT : f(*device));
}

/// Writes an answer, whatever its width.
template <typename T, typename V>
nvmlReturn_t give(T* out, V value) {
    *out = static_cast<T>(value);
    return NVML_SUCCESS;
}

}  // namespace cuslice::fake

/// Defines a function of a device: CUSLICE_NVML_DEVICE(nvmlDeviceGetBoardId, out, handle, out) { ... }. The body runs
/// for a good handle and a place for the answer, `answer`; `device` is the handle's.
#define CUSLICE_NVML_DEVICE(name, answer, handle, ...)                                                       \
    static nvmlReturn_t of_##name([[maybe_unused]] const ::cuslice::fake::NvmlDevice& device,                \
                                  CUSLICE_PARAMETERS(name, handle, __VA_ARGS__));                            \
    CUSLICE_NVML(name, handle, __VA_ARGS__) {                                                                \
        return ::cuslice::fake::with_device(handle, answer, [&](const ::cuslice::fake::NvmlDevice& device) { \
            return of_##name(device, handle, __VA_ARGS__);                                                   \
        });                                                                                                  \
    }                                                                                                        \
    static nvmlReturn_t of_##name([[maybe_unused]] const ::cuslice::fake::NvmlDevice& device,                \
                                  CUSLICE_PARAMETERS(name, handle, __VA_ARGS__))
