// SPDX-License-Identifier: Apache-2.0
// Utilization of a device and by its processes. Where work takes no time it is 0, as nothing runs on a fake GPU.
//
// "Memory" is the time of copies between host and device, and of nothing else: how much of the memory's bandwidth a
// kernel takes isn't known of kernels that don't run.

#include "fake/nvml/answer.h"
#include "fake/nvml/busy.h"

using namespace cuslice::fake;
using namespace cuslice::nvml;

namespace {

constexpr unsigned kSamplingUs = 100000;

nvmlReturn_t idle_utilization(nvmlDevice_t handle, unsigned* utilization, unsigned* sampling) {
    return with_device(handle, utilization, [&](const NvmlDevice&) {
        if (sampling == nullptr)
            return NVML_ERROR_INVALID_ARGUMENT;
        *sampling = kSamplingUs;
        return give(utilization, 0);
    });
}

/// As the library documents it: `*count` is the room and becomes the number; too little room is an error that tells it,
/// and no array a way to ask.
template <typename Sample>
nvmlReturn_t list_usage(nvmlDevice_t handle, unsigned* count, unsigned long long since, Sample* out) {
    CUSLICE_FIND(NvmlDevice, device, nvml_state().find(handle, device));
    if (count == nullptr)
        return NVML_ERROR_INVALID_ARGUMENT;
    UsageSample sample;
    CUSLICE_TRY(sample_usage(*device, since, sample));
    const unsigned room = *count;
    *count = static_cast<unsigned>(sample.processes.size());
    if (sample.processes.empty())
        return NVML_ERROR_NOT_FOUND;
    if (out == nullptr || room < sample.processes.size())
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (const ProcessUsage& process : sample.processes) {
        *out = {};
        out->pid = process.pid;
        out->timeStamp = sample.time;
        out->smUtil = process.usage.compute;
        out->memUtil = process.usage.copies;
        out++;
    }
    return NVML_SUCCESS;
}

}  // namespace

CUSLICE_NVML_DEVICE(nvmlDeviceGetUtilizationRates, out, handle, out) {
    const Usage usage = usage_of(device);
    *out = {usage.compute, usage.copies};
    return NVML_SUCCESS;
}

CUSLICE_NVML(nvmlDeviceGetEncoderUtilization, handle, out, sampling) { return idle_utilization(handle, out, sampling); }
CUSLICE_NVML(nvmlDeviceGetDecoderUtilization, handle, out, sampling) { return idle_utilization(handle, out, sampling); }

CUSLICE_NVML(nvmlDeviceGetProcessUtilization, handle, samples, count, since) {
    return list_usage(handle, count, since, samples);
}

CUSLICE_NVML(nvmlDeviceGetProcessesUtilizationInfo, handle, info) {
    if (info == nullptr)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (info->version != struct_version<nvmlProcessesUtilizationInfo_v1_t>(1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return list_usage(handle, &info->processSamplesCount, info->lastSeenTimeStamp, info->procUtilArray);
}
