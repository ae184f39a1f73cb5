// How a device is set up, and the MIG instances that it is divided into. Nothing can be changed.

#include "fake/nvml/answer.h"

using namespace cuslice::fake;
using namespace cuslice::nvml;

namespace {

Return flag(Device handle, Enable* out, Enable value) {
    return with_device(handle, out, [&](const NvmlDevice&) {
        *out = value;
        return SUCCESS;
    });
}

/// What can be asked of an instance and not of a GPU.
template <typename F>
Return of_instance(Device handle, const void* out, F&& f) {
    return with_device(handle, out, [&](const NvmlDevice& device) {
        return device.spec.is_instance ? f(device) : ERROR_INVALID_ARGUMENT;
    });
}

/// MIG came with compute capability 8.0, on boards for data centres.
bool has_mig(const GpuSpec& gpu) { return gpu.major >= 8 && gpu.brand == "nvidia" && !gpu.integrated; }

}  // namespace

CUSLICE_NVML(nvmlDeviceGetPersistenceMode);
Return nvmlDeviceGetPersistenceMode(Device handle, Enable* out) { return flag(handle, out, FEATURE_ENABLED); }
CUSLICE_NVML(nvmlDeviceGetDisplayMode);
Return nvmlDeviceGetDisplayMode(Device handle, Enable* out) { return flag(handle, out, FEATURE_DISABLED); }
CUSLICE_NVML(nvmlDeviceGetDisplayActive);
Return nvmlDeviceGetDisplayActive(Device handle, Enable* out) { return flag(handle, out, FEATURE_DISABLED); }

CUSLICE_NVML(nvmlDeviceGetComputeMode);
Return nvmlDeviceGetComputeMode(Device handle, ComputeMode* out) {
    return with_device(handle, out, [&](const NvmlDevice&) {
        *out = COMPUTEMODE_DEFAULT;
        return SUCCESS;
    });
}

CUSLICE_NVML(nvmlDeviceGetEccMode);
Return nvmlDeviceGetEccMode(Device handle, Enable* current, Enable* pending) {
    return with_device(handle, current, [&](const NvmlDevice& device) {
        if (pending == nullptr) return ERROR_INVALID_ARGUMENT;
        if (!device.spec.ecc) return ERROR_NOT_SUPPORTED;
        *current = *pending = FEATURE_ENABLED;
        return SUCCESS;
    });
}

CUSLICE_NVML(nvmlDeviceGetTotalEccErrors);
Return nvmlDeviceGetTotalEccErrors(Device handle, MemoryErrorType type, EccCounterType counter,
                                   unsigned long long* out) {
    return with_device(handle, out, [&](const NvmlDevice& device) {
        if (static_cast<unsigned>(type) > 1 || static_cast<unsigned>(counter) > 1) return ERROR_INVALID_ARGUMENT;
        if (!device.spec.ecc) return ERROR_NOT_SUPPORTED;
        *out = 0;
        return SUCCESS;
    });
}

CUSLICE_NVML(nvmlDeviceGetMigMode);
Return nvmlDeviceGetMigMode(Device handle, unsigned* current, unsigned* pending) {
    return with_device(handle, current, [&](const NvmlDevice& device) {
        if (pending == nullptr || device.spec.is_instance) return ERROR_INVALID_ARGUMENT;
        if (!has_mig(device.spec)) return ERROR_NOT_SUPPORTED;
        *current = *pending = device.spec.mig.empty() ? 0 : 1;
        return SUCCESS;
    });
}

CUSLICE_NVML(nvmlDeviceGetMaxMigDeviceCount);
Return nvmlDeviceGetMaxMigDeviceCount(Device handle, unsigned* out) {
    constexpr unsigned most = 7;
    return with_device(handle, out,
                       [&](const NvmlDevice& device) { return give(out, has_mig(device.spec) ? most : 0); });
}

CUSLICE_NVML(nvmlDeviceIsMigDeviceHandle);
Return nvmlDeviceIsMigDeviceHandle(Device handle, unsigned* out) {
    return with_device(handle, out,
                       [&](const NvmlDevice& device) { return give(out, device.spec.is_instance ? 1 : 0); });
}

CUSLICE_NVML(nvmlDeviceGetMigDeviceHandleByIndex);
Return nvmlDeviceGetMigDeviceHandleByIndex(Device handle, unsigned index, Device* out) {
    return with_device(handle, out, [&](const NvmlDevice& device) {
        if (device.spec.is_instance) return ERROR_INVALID_ARGUMENT;
        if (device.spec.mig.empty()) return ERROR_NOT_SUPPORTED;
        const std::size_t place = nvml_state().instance(nvml_state().place_of(device), index);
        return place == NvmlDevice::none ? ERROR_NOT_FOUND : give(out, nvml_state().handle(place));
    });
}

CUSLICE_NVML(nvmlDeviceGetDeviceHandleFromMigDeviceHandle);
Return nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device handle, Device* out) {
    return of_instance(handle, out,
                       [&](const NvmlDevice& device) { return give(out, nvml_state().handle(device.parent)); });
}

CUSLICE_NVML(nvmlDeviceGetGpuInstanceId);
Return nvmlDeviceGetGpuInstanceId(Device handle, unsigned* out) {
    return of_instance(handle, out, [&](const NvmlDevice& device) { return give(out, device.spec.gpu_instance); });
}
CUSLICE_NVML(nvmlDeviceGetComputeInstanceId);
Return nvmlDeviceGetComputeInstanceId(Device handle, unsigned* out) {
    return of_instance(handle, out, [&](const NvmlDevice& device) { return give(out, device.spec.compute_instance); });
}
