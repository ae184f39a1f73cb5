#pragma once
// The steps that nearly every function here has.
//
// NVIDIA's library is not linked -Bsymbolic: it calls its own functions through their exported names, so that whoever
// is first in the loader's scope stands in its way. This one does the same (CMakeLists.txt), wherever one function of
// NVML's is made of another: older forms of the newer ones, look-ups of the enumeration, errors of nvmlErrorString.

#include "fake/nvml/state.h"

CUSLICE_NVML(nvmlErrorString);

namespace cuslice::fake {

/// What NVML's functions do on their way out: the text of an error is looked up for the log.
inline nvml::Return answered(nvml::Return result) {
    if (result != nvml::SUCCESS) ::nvmlErrorString(result);
    return result;
}

/// Calls f(device) for a good handle and a place for the answer; else says what is wrong.
template <typename F>
nvml::Return with_device(nvml::Device handle, const void* out, F&& f) {
    NvmlDevice* device = nullptr;
    if (const nvml::Return bad = nvml_state().find(handle, device); bad != nvml::SUCCESS) return answered(bad);
    return answered(out == nullptr ? nvml::ERROR_INVALID_ARGUMENT : f(*device));
}

/// Writes an answer, whatever its width.
template <typename T, typename V>
nvml::Return give(T* out, V value) {
    *out = static_cast<T>(value);
    return nvml::SUCCESS;
}

}  // namespace cuslice::fake
