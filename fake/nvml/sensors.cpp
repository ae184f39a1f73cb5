// SPDX-License-Identifier: Apache-2.0
// Temperature, fans, power and clocks of a device. Nothing runs on a fake GPU, so it is always cool and at a tenth of
// its power. It is slow as well, but where the time that kernels take keeps it busy.

#include "fake/nvml/answer.h"
#include "fake/nvml/busy.h"

using namespace cuslice::fake;
using namespace cuslice::nvml;

namespace {

constexpr unsigned kIdleTemperature = 35, kIdleFan = 30;
constexpr unsigned long long kReasonIdle = nvmlClocksEventReasonGpuIdle;

bool computes(const NvmlDevice& device) { return usage_of(device).compute > 0; }

/// The highest clock of a domain, and what it idles at.
bool clock_of(const GpuSpec& spec, nvmlClockType_t type, unsigned& most, unsigned& idle) {
    switch (type) {
        case NVML_CLOCK_GRAPHICS:
        case NVML_CLOCK_SM:
            most = static_cast<unsigned>(spec.clock);
            break;
        case NVML_CLOCK_MEM:
            most = static_cast<unsigned>(spec.memory_clock);
            break;
        case NVML_CLOCK_VIDEO:
            most = static_cast<unsigned>(spec.clock * 9 / 10);
            break;
        default:
            return false;
    }
    idle = type == NVML_CLOCK_MEM ? most : most / 4;
    return true;
}

nvmlReturn_t clock(nvmlDevice_t handle, nvmlClockType_t type, unsigned* out, bool highest) {
    return with_device(handle, out, [&](const NvmlDevice& device) {
        unsigned most = 0, idle = 0;
        if (!clock_of(device.spec, type, most, idle))
            return NVML_ERROR_INVALID_ARGUMENT;
        return give(out, highest || computes(device) ? most : idle);
    });
}

nvmlReturn_t milliwatts(nvmlDevice_t handle, unsigned* out) {
    return with_device(handle, out,
                       [&](const NvmlDevice& device) { return give(out, device.spec.power_limit * 1000); });
}

nvmlReturn_t state_of(nvmlDevice_t handle, nvmlPstates_t* out) {
    return with_device(handle, out, [&](const NvmlDevice& device) {
        const bool rests = device.spec.brand == "geforce" && !computes(device);
        return give(out, rests ? NVML_PSTATE_8 : NVML_PSTATE_0);
    });
}

}  // namespace

CUSLICE_NVML_DEVICE(nvmlDeviceGetPcieThroughput, out, handle, counter, out) { return give(out, 0); }

CUSLICE_NVML_DEVICE(nvmlDeviceGetTemperature, out, handle, sensor, out) {
    return sensor == NVML_TEMPERATURE_GPU ? give(out, kIdleTemperature) : NVML_ERROR_INVALID_ARGUMENT;
}

CUSLICE_NVML_DEVICE(nvmlDeviceGetTemperatureV, out, handle, out) {
    if (out->version != struct_version<nvmlTemperature_v1_t>(1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (out->sensorType != NVML_TEMPERATURE_GPU)
        return NVML_ERROR_INVALID_ARGUMENT;
    return give(&out->temperature, kIdleTemperature);
}

CUSLICE_NVML_DEVICE(nvmlDeviceGetTemperatureThreshold, out, handle, threshold, out) {
    switch (threshold) {
        case NVML_TEMPERATURE_THRESHOLD_SHUTDOWN:
            return give(out, 95);
        case NVML_TEMPERATURE_THRESHOLD_SLOWDOWN:
            return give(out, 90);
        case NVML_TEMPERATURE_THRESHOLD_MEM_MAX:
            return give(out, 95);
        case NVML_TEMPERATURE_THRESHOLD_GPU_MAX:
            return give(out, 87);
        default:
            return NVML_ERROR_NOT_SUPPORTED;
    }
}

CUSLICE_NVML_DEVICE(nvmlDeviceGetNumFans, out, handle, out) { return give(out, device.spec.fan ? 1 : 0); }

CUSLICE_NVML_DEVICE(nvmlDeviceGetFanSpeed, out, handle, out) {
    return device.spec.fan ? give(out, kIdleFan) : NVML_ERROR_NOT_SUPPORTED;
}

CUSLICE_NVML_DEVICE(nvmlDeviceGetFanSpeed_v2, out, handle, fan, out) {
    if (!device.spec.fan)
        return NVML_ERROR_NOT_SUPPORTED;
    return fan == 0 ? give(out, kIdleFan) : NVML_ERROR_INVALID_ARGUMENT;
}

CUSLICE_NVML_DEVICE(nvmlDeviceGetPowerUsage, out, handle, out) { return give(out, device.spec.power_limit * 100); }
CUSLICE_NVML_DEVICE(nvmlDeviceGetPowerManagementMode, out, handle, out) { return give(out, NVML_FEATURE_ENABLED); }
CUSLICE_NVML(nvmlDeviceGetPowerManagementLimit, handle, out) { return milliwatts(handle, out); }
CUSLICE_NVML(nvmlDeviceGetPowerManagementDefaultLimit, handle, out) { return milliwatts(handle, out); }
CUSLICE_NVML(nvmlDeviceGetEnforcedPowerLimit, handle, out) { return milliwatts(handle, out); }

CUSLICE_NVML_DEVICE(nvmlDeviceGetPowerManagementLimitConstraints, least, handle, least, most) {
    if (most == nullptr)
        return NVML_ERROR_INVALID_ARGUMENT;
    *least = static_cast<unsigned>(device.spec.power_limit * 500);
    return give(most, device.spec.power_limit * 1000);
}

CUSLICE_NVML(nvmlDeviceGetPowerState, handle, out) { return state_of(handle, out); }
CUSLICE_NVML(nvmlDeviceGetPerformanceState, handle, out) { return state_of(handle, out); }

CUSLICE_NVML(nvmlDeviceGetClockInfo, handle, type, out) { return clock(handle, type, out, false); }
CUSLICE_NVML(nvmlDeviceGetMaxClockInfo, handle, type, out) { return clock(handle, type, out, true); }
CUSLICE_NVML(nvmlDeviceGetApplicationsClock, handle, type, out) { return clock(handle, type, out, true); }

CUSLICE_NVML(nvmlDeviceGetClock, handle, type, id, out) {
    if (static_cast<unsigned>(id) > NVML_CLOCK_ID_CUSTOMER_BOOST_MAX)
        return NVML_ERROR_INVALID_ARGUMENT;
    return clock(handle, type, out, id != NVML_CLOCK_ID_CURRENT);
}

CUSLICE_NVML_DEVICE(nvmlDeviceGetCurrentClocksThrottleReasons, out, handle, out) {
    return give(out, computes(device) ? nvmlClocksEventReasonNone : kReasonIdle);
}
CUSLICE_NVML_DEVICE(nvmlDeviceGetSupportedClocksThrottleReasons, out, handle, out) { return give(out, kReasonIdle); }
