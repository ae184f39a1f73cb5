// How a device is set up. Nothing can be changed, and there is no MIG.

#include "virtual_gpu/fake/nvml/answer.h"

using namespace cuslice::fake;
using namespace cuslice::nvml;

namespace {

Return flag(Device handle, Enable* out, Enable value) {
    return with_device(handle, out, [&](const NvmlDevice&) {
        *out = value;
        return SUCCESS;
    });
}

Return number(Device handle, unsigned* out, unsigned value) {
    return with_device(handle, out, [&](const NvmlDevice&) {
        *out = value;
        return SUCCESS;
    });
}

Return of_mig_alone(Device handle, const void* out) {
    return with_device(handle, out, [](const NvmlDevice&) { return ERROR_NOT_SUPPORTED; });
}

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
Return nvmlDeviceGetMigMode(Device handle, unsigned* current, unsigned*) { return of_mig_alone(handle, current); }
CUSLICE_NVML(nvmlDeviceGetMaxMigDeviceCount);
Return nvmlDeviceGetMaxMigDeviceCount(Device handle, unsigned* out) { return number(handle, out, 0); }
CUSLICE_NVML(nvmlDeviceIsMigDeviceHandle);
Return nvmlDeviceIsMigDeviceHandle(Device handle, unsigned* out) { return number(handle, out, 0); }
CUSLICE_NVML(nvmlDeviceGetMigDeviceHandleByIndex);
Return nvmlDeviceGetMigDeviceHandleByIndex(Device handle, unsigned, Device* out) { return of_mig_alone(handle, out); }
CUSLICE_NVML(nvmlDeviceGetDeviceHandleFromMigDeviceHandle);
Return nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device handle, Device* out) { return of_mig_alone(handle, out); }
CUSLICE_NVML(nvmlDeviceGetGpuInstanceId);
Return nvmlDeviceGetGpuInstanceId(Device handle, unsigned* out) { return of_mig_alone(handle, out); }
CUSLICE_NVML(nvmlDeviceGetComputeInstanceId);
Return nvmlDeviceGetComputeInstanceId(Device handle, unsigned* out) { return of_mig_alone(handle, out); }
