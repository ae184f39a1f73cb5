// SPDX-License-Identifier: Apache-2.0
// Confidential computing: off, on a machine that can't.

#include <algorithm>

#include "fake/nvml/answer.h"

using namespace cuslice::fake;
using namespace cuslice::nvml;

namespace {

/// Calls f() for a place for the answer, where one of the GPUs is new enough for the question to be understood.
template <typename F>
nvmlReturn_t from(int capability, const void* out, F&& f) {
    if (!nvml_state().started())
        return answered(NVML_ERROR_UNINITIALIZED);
    if (out == nullptr)
        return answered(NVML_ERROR_INVALID_ARGUMENT);
    const std::vector<NvmlDevice>& all = nvml_state().devices();
    const bool understood = std::any_of(
        all.begin(), all.end(), [&](const NvmlDevice& device) { return device.spec.capability() >= capability; });
    return answered(understood ? f() : NVML_ERROR_NOT_SUPPORTED);
}

constexpr int kAmpere = 80, kHopper = 90;

}  // namespace

CUSLICE_NVML(nvmlSystemGetConfComputeCapabilities, out) {
    return from(kAmpere, out, [&] {
        *out = {NVML_CC_SYSTEM_CPU_CAPS_NONE, NVML_CC_SYSTEM_GPUS_CC_NOT_CAPABLE};
        return NVML_SUCCESS;
    });
}

CUSLICE_NVML(nvmlSystemGetConfComputeState, out) {
    return from(kAmpere, out, [&] {
        *out = {NVML_CC_SYSTEM_ENVIRONMENT_UNAVAILABLE, NVML_CC_SYSTEM_FEATURE_DISABLED,
                NVML_CC_SYSTEM_DEVTOOLS_MODE_OFF};
        return NVML_SUCCESS;
    });
}

CUSLICE_NVML(nvmlSystemGetConfComputeSettings, out) {
    return from(kHopper, out, [&] {
        if (out->version != struct_version<nvmlSystemConfComputeSettings_v1_t>(1))
            return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        out->environment = NVML_CC_SYSTEM_ENVIRONMENT_UNAVAILABLE;
        out->ccFeature = NVML_CC_SYSTEM_FEATURE_DISABLED;
        out->devToolsMode = NVML_CC_SYSTEM_DEVTOOLS_MODE_OFF;
        out->multiGpuMode = NVML_CC_SYSTEM_MULTIGPU_NONE;
        return NVML_SUCCESS;
    });
}

/// The ready state is refused, as no GPU here can take confidential work.
CUSLICE_NVML(nvmlSystemGetConfComputeGpusReadyState, out) {
    return from(kAmpere, out, [] { return NVML_ERROR_NOT_SUPPORTED; });
}
