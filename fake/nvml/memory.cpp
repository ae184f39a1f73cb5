// Memory and who holds it: read from the books that the fake driver keeps.

#include "fake/nvml/answer.h"

using namespace cuslice::fake;
using namespace cuslice::nvml;

namespace {

/// As the library documents it: `*count` is the room and becomes the number; too little room is an error that tells it.
template <typename Info, typename Fill>
Return list_processes(Device handle, unsigned* count, Info* out, Fill&& fill) {
    NvmlDevice* device = nullptr;
    std::vector<NvmlHolder> holders;
    if (const Return bad = nvml_state().find(handle, device); bad != SUCCESS) return bad;
    if (count == nullptr || (*count > 0 && out == nullptr)) return ERROR_INVALID_ARGUMENT;
    const DriverSpec& driver = device->spec.driver;
    if (driver.process_list == "unsupported") return ERROR_NOT_SUPPORTED;
    if (driver.process_list == "listed")
        if (const Return bad = holders_of(*device, holders); bad != SUCCESS) return bad;
    const unsigned room = *count;
    *count = static_cast<unsigned>(holders.size());
    if (room < holders.size()) return ERROR_INSUFFICIENT_SIZE;
    for (std::size_t i = 0; i < holders.size(); i++) {
        out[i] = {};
        out[i].pid = static_cast<unsigned>(driver.listed_pid(holders[i].holder.pid));
        out[i].usedGpuMemory = driver.process_memory ? holders[i].holder.used : VALUE_NOT_AVAILABLE;
        fill(out[i], *holders[i].spec);
    }
    return SUCCESS;
}

template <typename Info>
void put_instance(Info& info, const GpuSpec& spec) {
    info.gpuInstanceId = spec.is_instance ? spec.gpu_instance : NO_INSTANCE;
    info.computeInstanceId = spec.is_instance ? spec.compute_instance : NO_INSTANCE;
}

Return compute_processes(Device handle, unsigned* count, ProcessInfo* out) {
    return list_processes(handle, count, out, put_instance<ProcessInfo>);
}

/// Nobody draws on a fake GPU, and there is no MPS server.
Return no_processes(Device handle, unsigned* count) {
    NvmlDevice* device = nullptr;
    if (const Return bad = nvml_state().find(handle, device); bad != SUCCESS) return bad;
    if (count == nullptr) return ERROR_INVALID_ARGUMENT;
    *count = 0;
    return SUCCESS;
}

Return used_bytes(Device handle, NvmlDevice*& device, unsigned long long& used) {
    if (const Return bad = nvml_state().find(handle, device); bad != SUCCESS) return bad;
    if (device->spec.integrated) return ERROR_NOT_SUPPORTED;
    used = 0;
    const std::size_t own = nvml_state().place_of(*device);
    for (NvmlDevice& one : nvml_state().devices()) {
        if (&one != device && one.parent != own) continue;
        if (!one.open()) return ERROR_UNKNOWN;
        used += one.books.used_by_all();
    }
    return SUCCESS;
}

}  // namespace

CUSLICE_NVML(nvmlDeviceGetMemoryInfo_v2);
CUSLICE_NVML(nvmlDeviceGetMemoryInfo);
Return nvmlDeviceGetMemoryInfo(Device handle, Memory* out) {
    NvmlDevice* device = nullptr;
    if (out == nullptr) return answered(ERROR_INVALID_ARGUMENT);
    if (const Return bad = nvml_state().find(handle, device); bad != SUCCESS) return answered(bad);
    MemoryV2 now{};
    now.version = struct_version<MemoryV2>(2);
    // Before 510 there was no newer form, and what the driver keeps was in no figure.
    if (!device->spec.driver.tells_reserved()) {
        unsigned long long used = 0;
        if (const Return bad = used_bytes(handle, device, used); bad != SUCCESS) return answered(bad);
        *out = {device->spec.memory, device->spec.memory - used, used};
        return SUCCESS;
    }
    if (const Return bad = nvmlDeviceGetMemoryInfo_v2(handle, &now); bad != SUCCESS) return bad;
    *out = {now.total, now.free, now.used + now.reserved};  // this form counts the driver's own part as used
    return SUCCESS;
}

Return nvmlDeviceGetMemoryInfo_v2(Device handle, MemoryV2* out) {
    NvmlDevice* device = nullptr;
    unsigned long long used = 0;
    if (const Return bad = used_bytes(handle, device, used); bad != SUCCESS) return bad;
    if (out == nullptr) return ERROR_INVALID_ARGUMENT;
    if (out->version != struct_version<MemoryV2>(2)) return ERROR_ARGUMENT_VERSION_MISMATCH;
    out->total = device->spec.memory + device->spec.reserved;
    out->reserved = device->spec.reserved;
    out->used = used;
    out->free = out->total - out->reserved - out->used;
    return SUCCESS;
}

CUSLICE_NVML(nvmlDeviceGetBAR1MemoryInfo);
Return nvmlDeviceGetBAR1MemoryInfo(Device handle, Bar1Memory* out) {
    NvmlDevice* device = nullptr;
    if (const Return bad = nvml_state().find(handle, device); bad != SUCCESS) return bad;
    if (out == nullptr) return ERROR_INVALID_ARGUMENT;
    constexpr unsigned long long window = 256ULL << 20, taken = 2ULL << 20;
    *out = {window, window - taken, taken};
    return SUCCESS;
}

CUSLICE_NVML(nvmlDeviceGetComputeRunningProcesses);
Return nvmlDeviceGetComputeRunningProcesses(Device handle, unsigned* count, ProcessInfoV1* out) {
    return list_processes(handle, count, out, [](ProcessInfoV1&, const GpuSpec&) {});
}
CUSLICE_NVML(nvmlDeviceGetComputeRunningProcesses_v2);
Return nvmlDeviceGetComputeRunningProcesses_v2(Device handle, unsigned* count, ProcessInfo* out) {
    return compute_processes(handle, count, out);
}
CUSLICE_NVML(nvmlDeviceGetComputeRunningProcesses_v3);
Return nvmlDeviceGetComputeRunningProcesses_v3(Device handle, unsigned* count, ProcessInfo* out) {
    return compute_processes(handle, count, out);
}

CUSLICE_NVML(nvmlDeviceGetGraphicsRunningProcesses);
Return nvmlDeviceGetGraphicsRunningProcesses(Device handle, unsigned* count, ProcessInfoV1*) {
    return no_processes(handle, count);
}
CUSLICE_NVML(nvmlDeviceGetGraphicsRunningProcesses_v2);
Return nvmlDeviceGetGraphicsRunningProcesses_v2(Device handle, unsigned* count, ProcessInfo*) {
    return no_processes(handle, count);
}
CUSLICE_NVML(nvmlDeviceGetGraphicsRunningProcesses_v3);
Return nvmlDeviceGetGraphicsRunningProcesses_v3(Device handle, unsigned* count, ProcessInfo*) {
    return no_processes(handle, count);
}
CUSLICE_NVML(nvmlDeviceGetMPSComputeRunningProcesses);
Return nvmlDeviceGetMPSComputeRunningProcesses(Device handle, unsigned* count, ProcessInfoV1*) {
    return no_processes(handle, count);
}
CUSLICE_NVML(nvmlDeviceGetMPSComputeRunningProcesses_v2);
Return nvmlDeviceGetMPSComputeRunningProcesses_v2(Device handle, unsigned* count, ProcessInfo*) {
    return no_processes(handle, count);
}
CUSLICE_NVML(nvmlDeviceGetMPSComputeRunningProcesses_v3);
Return nvmlDeviceGetMPSComputeRunningProcesses_v3(Device handle, unsigned* count, ProcessInfo*) {
    return no_processes(handle, count);
}

CUSLICE_NVML(nvmlDeviceGetRunningProcessDetailList);
Return nvmlDeviceGetRunningProcessDetailList(Device handle, ProcessDetailList* list) {
    if (list == nullptr) return ERROR_INVALID_ARGUMENT;
    if (list->version != struct_version<ProcessDetailList>(1)) return ERROR_ARGUMENT_VERSION_MISMATCH;
    if (list->mode != PROCESS_MODE_COMPUTE) return no_processes(handle, &list->numProcArrayEntries);
    return list_processes(handle, &list->numProcArrayEntries, list->procArray, put_instance<ProcessDetail>);
}

CUSLICE_NVML(nvmlDeviceGetProcessUtilization);
Return nvmlDeviceGetProcessUtilization(Device handle, ProcessUtilizationSample*, unsigned* count, unsigned long long) {
    const Return bad = no_processes(handle, count);
    return bad != SUCCESS ? bad : ERROR_NOT_FOUND;  // documented answer when there are no samples
}
