// SPDX-License-Identifier: Apache-2.0
// How a device is set up, and the MIG instances that it is divided into. Nothing can be changed.

#include "fake/nvml/answer.h"

using namespace cuslice::fake;
using namespace cuslice::nvml;

namespace {

/// Calls f(device) for a MIG instance; NVML_ERROR_INVALID_ARGUMENT for a GPU.
template <typename F>
nvmlReturn_t of_instance(nvmlDevice_t handle, const void* out, F&& f) {
    return with_device(handle, out, [&](const NvmlDevice& device) {
        return device.spec.is_instance ? f(device) : NVML_ERROR_INVALID_ARGUMENT;
    });
}

/// MIG came with compute capability 8.0, on boards for data centres.
bool has_mig(const GpuSpec& gpu) { return gpu.major >= 8 && gpu.brand == "nvidia" && !gpu.integrated; }

}  // namespace

CUSLICE_NVML_DEVICE(nvmlDeviceGetPersistenceMode, out, handle, out) { return give(out, NVML_FEATURE_ENABLED); }
CUSLICE_NVML_DEVICE(nvmlDeviceGetDisplayMode, out, handle, out) { return give(out, NVML_FEATURE_DISABLED); }
CUSLICE_NVML_DEVICE(nvmlDeviceGetDisplayActive, out, handle, out) { return give(out, NVML_FEATURE_DISABLED); }

CUSLICE_NVML_DEVICE(nvmlDeviceGetComputeMode, out, handle, out) { return give(out, NVML_COMPUTEMODE_DEFAULT); }

CUSLICE_NVML_DEVICE(nvmlDeviceGetEccMode, current, handle, current, pending) {
    if (pending == nullptr)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!device.spec.ecc)
        return NVML_ERROR_NOT_SUPPORTED;
    *current = *pending = NVML_FEATURE_ENABLED;
    return NVML_SUCCESS;
}

CUSLICE_NVML_DEVICE(nvmlDeviceGetTotalEccErrors, out, handle, type, counter, out) {
    if (static_cast<unsigned>(type) > 1 || static_cast<unsigned>(counter) > 1)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!device.spec.ecc)
        return NVML_ERROR_NOT_SUPPORTED;
    return give(out, 0);
}

CUSLICE_NVML_DEVICE(nvmlDeviceGetMigMode, current, handle, current, pending) {
    if (pending == nullptr || device.spec.is_instance)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!has_mig(device.spec))
        return NVML_ERROR_NOT_SUPPORTED;
    *current = *pending = device.spec.mig.empty() ? 0 : 1;
    return NVML_SUCCESS;
}

CUSLICE_NVML_DEVICE(nvmlDeviceGetMaxMigDeviceCount, out, handle, out) {
    constexpr unsigned kMost = 7;
    return give(out, has_mig(device.spec) ? kMost : 0);
}

CUSLICE_NVML_DEVICE(nvmlDeviceIsMigDeviceHandle, out, handle, out) {
    return give(out, device.spec.is_instance ? 1 : 0);
}

CUSLICE_NVML_DEVICE(nvmlDeviceGetMigDeviceHandleByIndex, out, handle, index, out) {
    if (device.spec.is_instance)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (device.spec.mig.empty())
        return NVML_ERROR_NOT_SUPPORTED;
    const size_t place = nvml_state().instance(nvml_state().place_of(device), index);
    return place == NvmlDevice::kNone ? NVML_ERROR_NOT_FOUND : give(out, nvml_state().handle(place));
}

CUSLICE_NVML(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, handle, out) {
    return of_instance(handle, out,
                       [&](const NvmlDevice& device) { return give(out, nvml_state().handle(device.parent)); });
}

CUSLICE_NVML(nvmlDeviceGetGpuInstanceId, handle, out) {
    return of_instance(handle, out, [&](const NvmlDevice& device) { return give(out, device.spec.gpu_instance); });
}
CUSLICE_NVML(nvmlDeviceGetComputeInstanceId, handle, out) {
    return of_instance(handle, out, [&](const NvmlDevice& device) { return give(out, device.spec.compute_instance); });
}
