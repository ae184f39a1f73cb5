// SPDX-License-Identifier: Apache-2.0
// Memory and who holds it: read from the books that the fake driver keeps.

#include "fake/nvml/answer.h"

using namespace cuslice::fake;
using namespace cuslice::nvml;

namespace {

/// As the library documents it: `*count` is the room and becomes the number; too little room is an error that tells it.
template <typename Info, typename Fill>
nvmlReturn_t list_processes(nvmlDevice_t handle, unsigned* count, Info* out, Fill&& fill) {
    std::vector<NvmlHolder> holders;
    CUSLICE_FIND(NvmlDevice, device, nvml_state().find(handle, device));
    if (count == nullptr || (*count > 0 && out == nullptr))
        return NVML_ERROR_INVALID_ARGUMENT;
    const DriverSpec& driver = device->spec.driver;
    if (driver.process_list == "unsupported")
        return NVML_ERROR_NOT_SUPPORTED;
    if (driver.process_list == "listed")
        CUSLICE_TRY(holders_of(*device, holders));
    const unsigned room = *count;
    *count = static_cast<unsigned>(holders.size());
    if (room < holders.size())
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (size_t i = 0; i < holders.size(); i++) {
        out[i] = {};
        out[i].pid = static_cast<unsigned>(driver.listed_pid(holders[i].pid));
        out[i].usedGpuMemory = driver.process_memory ? holders[i].holder.used : kValueNotAvailable;
        fill(out[i], *holders[i].spec);
    }
    return NVML_SUCCESS;
}

template <typename Info>
void put_instance(Info& info, const GpuSpec& spec) {
    info.gpuInstanceId = spec.is_instance ? spec.gpu_instance : kNoInstance;
    info.computeInstanceId = spec.is_instance ? spec.compute_instance : kNoInstance;
}

nvmlReturn_t compute_processes(nvmlDevice_t handle, unsigned* count, nvmlProcessInfo_t* out) {
    return list_processes(handle, count, out, put_instance<nvmlProcessInfo_t>);
}

/// Nobody draws on a fake GPU, and there is no MPS server.
nvmlReturn_t no_processes(nvmlDevice_t handle, unsigned* count) {
    CUSLICE_FIND(NvmlDevice, device, nvml_state().find(handle, device));
    if (count == nullptr)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t used_bytes(nvmlDevice_t handle, NvmlDevice*& device, unsigned long long& used) {
    CUSLICE_TRY(nvml_state().find(handle, device));
    if (device->spec.integrated)
        return NVML_ERROR_NOT_SUPPORTED;
    used = 0;
    const size_t own = nvml_state().place_of(*device);
    for (NvmlDevice& one : nvml_state().devices()) {
        if (&one != device && one.parent != own)
            continue;
        if (!one.open())
            return NVML_ERROR_UNKNOWN;
        used += one.books.used_by_all();
    }
    return NVML_SUCCESS;
}

}  // namespace

CUSLICE_NVML(nvmlDeviceGetMemoryInfo, handle, out) {
    if (out == nullptr)
        return answered(NVML_ERROR_INVALID_ARGUMENT);
    CUSLICE_FIND(NvmlDevice, device, answered(nvml_state().find(handle, device)));
    nvmlMemory_v2_t now{};
    now.version = struct_version<nvmlMemory_v2_t>(2);
    // Before 510 there was no newer form, and what the driver keeps was in no figure.
    if (!device->spec.driver.tells_reserved()) {
        unsigned long long used = 0;
        CUSLICE_TRY(answered(used_bytes(handle, device, used)));
        *out = {device->spec.memory, device->spec.memory - used, used};
        return NVML_SUCCESS;
    }
    CUSLICE_TRY(nvmlDeviceGetMemoryInfo_v2(handle, &now));
    *out = {now.total, now.free, now.used + now.reserved};  // this form counts the driver's own footprint as used
    return NVML_SUCCESS;
}

CUSLICE_NVML(nvmlDeviceGetMemoryInfo_v2, handle, out) {
    unsigned long long used = 0;
    CUSLICE_FIND(NvmlDevice, device, used_bytes(handle, device, used));
    if (out == nullptr)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (out->version != struct_version<nvmlMemory_v2_t>(2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    out->total = device->spec.memory + device->spec.reserved;
    out->reserved = device->spec.reserved;
    out->used = used;
    out->free = out->total - out->reserved - out->used;
    return NVML_SUCCESS;
}

CUSLICE_NVML(nvmlDeviceGetBAR1MemoryInfo, handle, out) {
    CUSLICE_FIND(NvmlDevice, device, nvml_state().find(handle, device));
    if (out == nullptr)
        return NVML_ERROR_INVALID_ARGUMENT;
    constexpr unsigned long long kWindow = 256ULL << 20, kTaken = 2ULL << 20;
    *out = {kWindow, kWindow - kTaken, kTaken};
    return NVML_SUCCESS;
}

CUSLICE_NVML(nvmlDeviceGetComputeRunningProcesses, handle, count, out) {
    return list_processes(handle, count, out, [](nvmlProcessInfo_v1_t&, const GpuSpec&) {});
}
CUSLICE_NVML(nvmlDeviceGetComputeRunningProcesses_v2, handle, count, out) {
    return compute_processes(handle, count, out);
}
CUSLICE_NVML(nvmlDeviceGetComputeRunningProcesses_v3, handle, count, out) {
    return compute_processes(handle, count, out);
}

CUSLICE_NVML(nvmlDeviceGetGraphicsRunningProcesses, handle, count, infos) { return no_processes(handle, count); }
CUSLICE_NVML(nvmlDeviceGetGraphicsRunningProcesses_v2, handle, count, infos) { return no_processes(handle, count); }
CUSLICE_NVML(nvmlDeviceGetGraphicsRunningProcesses_v3, handle, count, infos) { return no_processes(handle, count); }
CUSLICE_NVML(nvmlDeviceGetMPSComputeRunningProcesses, handle, count, infos) { return no_processes(handle, count); }
CUSLICE_NVML(nvmlDeviceGetMPSComputeRunningProcesses_v2, handle, count, infos) { return no_processes(handle, count); }
CUSLICE_NVML(nvmlDeviceGetMPSComputeRunningProcesses_v3, handle, count, infos) { return no_processes(handle, count); }

CUSLICE_NVML(nvmlDeviceGetRunningProcessDetailList, handle, list) {
    if (list == nullptr)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (list->version != struct_version<nvmlProcessDetailList_v1_t>(1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (list->mode != kProcessModeCompute)
        return no_processes(handle, &list->numProcArrayEntries);
    return list_processes(handle, &list->numProcArrayEntries, list->procArray, put_instance<nvmlProcessDetail_v1_t>);
}
