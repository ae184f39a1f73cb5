// What a device does. Nothing runs on a fake GPU, so it is always idle: cool, slow and at a tenth of its power.

#include "fake/nvml/answer.h"

using namespace cuslice::fake;
using namespace cuslice::nvml;

namespace {

constexpr unsigned idle_temperature = 35, idle_fan = 30;
constexpr unsigned sampling_us = 100000;
constexpr unsigned long long reason_idle = 1;

Return idle_utilization(Device handle, unsigned* utilization, unsigned* sampling) {
    return with_device(handle, utilization, [&](const NvmlDevice&) {
        if (sampling == nullptr) return ERROR_INVALID_ARGUMENT;
        *sampling = sampling_us;
        return give(utilization, 0);
    });
}

/// The highest clock of a domain, and what it idles at.
bool clock_of(const GpuSpec& spec, ClockType type, unsigned& most, unsigned& idle) {
    switch (type) {
        case CLOCK_GRAPHICS:
        case CLOCK_SM:
            most = static_cast<unsigned>(spec.clock);
            break;
        case CLOCK_MEM:
            most = static_cast<unsigned>(spec.memory_clock);
            break;
        case CLOCK_VIDEO:
            most = static_cast<unsigned>(spec.clock * 9 / 10);
            break;
        default:
            return false;
    }
    idle = type == CLOCK_MEM ? most : most / 4;
    return true;
}

Return clock(Device handle, ClockType type, unsigned* out, bool highest) {
    return with_device(handle, out, [&](const NvmlDevice& device) {
        unsigned most = 0, idle = 0;
        if (!clock_of(device.spec, type, most, idle)) return ERROR_INVALID_ARGUMENT;
        return give(out, highest ? most : idle);
    });
}

Return milliwatts(Device handle, unsigned* out) {
    return with_device(handle, out,
                       [&](const NvmlDevice& device) { return give(out, device.spec.power_limit * 1000); });
}

Return state_of(Device handle, Pstate* out) {
    return with_device(handle, out, [&](const NvmlDevice& device) {
        return give(out, device.spec.brand == "geforce" ? PSTATE_8 : PSTATE_0);
    });
}

}  // namespace

CUSLICE_NVML(nvmlDeviceGetUtilizationRates);
Return nvmlDeviceGetUtilizationRates(Device handle, Utilization* out) {
    return with_device(handle, out, [&](const NvmlDevice&) {
        *out = {0, 0};
        return SUCCESS;
    });
}

CUSLICE_NVML(nvmlDeviceGetEncoderUtilization);
Return nvmlDeviceGetEncoderUtilization(Device handle, unsigned* out, unsigned* sampling) {
    return idle_utilization(handle, out, sampling);
}
CUSLICE_NVML(nvmlDeviceGetDecoderUtilization);
Return nvmlDeviceGetDecoderUtilization(Device handle, unsigned* out, unsigned* sampling) {
    return idle_utilization(handle, out, sampling);
}

CUSLICE_NVML(nvmlDeviceGetPcieThroughput);
Return nvmlDeviceGetPcieThroughput(Device handle, PcieUtilCounter, unsigned* out) {
    return with_device(handle, out, [&](const NvmlDevice&) { return give(out, 0); });
}

CUSLICE_NVML(nvmlDeviceGetTemperature);
Return nvmlDeviceGetTemperature(Device handle, TemperatureSensor sensor, unsigned* out) {
    return with_device(handle, out, [&](const NvmlDevice&) {
        return sensor == TEMPERATURE_GPU ? give(out, idle_temperature) : ERROR_INVALID_ARGUMENT;
    });
}

CUSLICE_NVML(nvmlDeviceGetTemperatureV);
Return nvmlDeviceGetTemperatureV(Device handle, Temperature* out) {
    return with_device(handle, out, [&](const NvmlDevice&) {
        if (out->version != struct_version<Temperature>(1)) return ERROR_ARGUMENT_VERSION_MISMATCH;
        if (out->sensorType != TEMPERATURE_GPU) return ERROR_INVALID_ARGUMENT;
        return give(&out->temperature, idle_temperature);
    });
}

CUSLICE_NVML(nvmlDeviceGetTemperatureThreshold);
Return nvmlDeviceGetTemperatureThreshold(Device handle, TemperatureThreshold threshold, unsigned* out) {
    return with_device(handle, out, [&](const NvmlDevice&) {
        switch (threshold) {
            case TEMPERATURE_THRESHOLD_SHUTDOWN:
                return give(out, 95);
            case TEMPERATURE_THRESHOLD_SLOWDOWN:
                return give(out, 90);
            case TEMPERATURE_THRESHOLD_MEM_MAX:
                return give(out, 95);
            case TEMPERATURE_THRESHOLD_GPU_MAX:
                return give(out, 87);
            default:
                return ERROR_NOT_SUPPORTED;
        }
    });
}

CUSLICE_NVML(nvmlDeviceGetNumFans);
Return nvmlDeviceGetNumFans(Device handle, unsigned* out) {
    return with_device(handle, out, [&](const NvmlDevice& device) { return give(out, device.spec.fan ? 1 : 0); });
}

CUSLICE_NVML(nvmlDeviceGetFanSpeed);
Return nvmlDeviceGetFanSpeed(Device handle, unsigned* out) {
    return with_device(handle, out, [&](const NvmlDevice& device) {
        return device.spec.fan ? give(out, idle_fan) : ERROR_NOT_SUPPORTED;
    });
}

CUSLICE_NVML(nvmlDeviceGetFanSpeed_v2);
Return nvmlDeviceGetFanSpeed_v2(Device handle, unsigned fan, unsigned* out) {
    return with_device(handle, out, [&](const NvmlDevice& device) {
        if (!device.spec.fan) return ERROR_NOT_SUPPORTED;
        return fan == 0 ? give(out, idle_fan) : ERROR_INVALID_ARGUMENT;
    });
}

CUSLICE_NVML(nvmlDeviceGetPowerUsage);
Return nvmlDeviceGetPowerUsage(Device handle, unsigned* out) {
    return with_device(handle, out, [&](const NvmlDevice& device) { return give(out, device.spec.power_limit * 100); });
}
CUSLICE_NVML(nvmlDeviceGetPowerManagementMode);
Return nvmlDeviceGetPowerManagementMode(Device handle, Enable* out) {
    return with_device(handle, out, [&](const NvmlDevice&) { return give(out, FEATURE_ENABLED); });
}
CUSLICE_NVML(nvmlDeviceGetPowerManagementLimit);
Return nvmlDeviceGetPowerManagementLimit(Device handle, unsigned* out) { return milliwatts(handle, out); }
CUSLICE_NVML(nvmlDeviceGetPowerManagementDefaultLimit);
Return nvmlDeviceGetPowerManagementDefaultLimit(Device handle, unsigned* out) { return milliwatts(handle, out); }
CUSLICE_NVML(nvmlDeviceGetEnforcedPowerLimit);
Return nvmlDeviceGetEnforcedPowerLimit(Device handle, unsigned* out) { return milliwatts(handle, out); }

CUSLICE_NVML(nvmlDeviceGetPowerManagementLimitConstraints);
Return nvmlDeviceGetPowerManagementLimitConstraints(Device handle, unsigned* least, unsigned* most) {
    return with_device(handle, least, [&](const NvmlDevice& device) {
        if (most == nullptr) return ERROR_INVALID_ARGUMENT;
        *least = static_cast<unsigned>(device.spec.power_limit * 500);
        return give(most, device.spec.power_limit * 1000);
    });
}

CUSLICE_NVML(nvmlDeviceGetPowerState);
Return nvmlDeviceGetPowerState(Device handle, Pstate* out) { return state_of(handle, out); }
CUSLICE_NVML(nvmlDeviceGetPerformanceState);
Return nvmlDeviceGetPerformanceState(Device handle, Pstate* out) { return state_of(handle, out); }

CUSLICE_NVML(nvmlDeviceGetClockInfo);
Return nvmlDeviceGetClockInfo(Device handle, ClockType type, unsigned* out) { return clock(handle, type, out, false); }
CUSLICE_NVML(nvmlDeviceGetMaxClockInfo);
Return nvmlDeviceGetMaxClockInfo(Device handle, ClockType type, unsigned* out) {
    return clock(handle, type, out, true);
}
CUSLICE_NVML(nvmlDeviceGetApplicationsClock);
Return nvmlDeviceGetApplicationsClock(Device handle, ClockType type, unsigned* out) {
    return clock(handle, type, out, true);
}

CUSLICE_NVML(nvmlDeviceGetClock);
Return nvmlDeviceGetClock(Device handle, ClockType type, ClockId id, unsigned* out) {
    if (static_cast<unsigned>(id) > CLOCK_ID_CUSTOMER_BOOST_MAX) return ERROR_INVALID_ARGUMENT;
    return clock(handle, type, out, id != CLOCK_ID_CURRENT);
}

CUSLICE_NVML(nvmlDeviceGetCurrentClocksThrottleReasons);
Return nvmlDeviceGetCurrentClocksThrottleReasons(Device handle, unsigned long long* out) {
    return with_device(handle, out, [&](const NvmlDevice&) { return give(out, reason_idle); });
}
CUSLICE_NVML(nvmlDeviceGetSupportedClocksThrottleReasons);
Return nvmlDeviceGetSupportedClocksThrottleReasons(Device handle, unsigned long long* out) {
    return with_device(handle, out, [&](const NvmlDevice&) { return give(out, reason_idle); });
}
