#pragma once
// The two steps that nearly every function here has.

#include "virtual_gpu/fake/nvml/state.h"

namespace cuslice::fake {

/// Calls f(device) for a good handle and a place for the answer; else says what is wrong.
template <typename F>
nvml::Return with_device(nvml::Device handle, const void* out, F&& f) {
    NvmlDevice* device = nullptr;
    if (const nvml::Return bad = nvml_state().find(handle, device); bad != nvml::SUCCESS) return bad;
    return out == nullptr ? nvml::ERROR_INVALID_ARGUMENT : f(*device);
}

/// Writes an answer, whatever its width.
template <typename T, typename V>
nvml::Return give(T* out, V value) {
    *out = static_cast<T>(value);
    return nvml::SUCCESS;
}

}  // namespace cuslice::fake
