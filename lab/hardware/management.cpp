// SPDX-License-Identifier: Apache-2.0
#include "lab/hardware/management.h"

#include <dlfcn.h>

#include "virtual_gpu/driver/nvml.h"

namespace cuslice::check {

namespace {

template <typename Function>
Function* find(const char* name) {
    static void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    return library ? reinterpret_cast<Function*>(dlsym(library, name)) : nullptr;
}

#define NVML(name) (find<decltype(::name)>(#name))

std::vector<nvmlDevice_t> devices() {
    std::vector<nvmlDevice_t> all;
    unsigned count = 0;
    if (!has_management() || NVML(nvmlDeviceGetCount_v2)(&count) != NVML_SUCCESS)
        return all;
    for (unsigned i = 0; i < count; i++) {
        nvmlDevice_t device = nullptr;
        if (NVML(nvmlDeviceGetHandleByIndex_v2)(i, &device) == NVML_SUCCESS)
            all.push_back(device);
    }
    return all;
}

nvmlDevice_t device_of(const char* uuid) {
    nvmlDevice_t device = nullptr;
    if (!has_management() || NVML(nvmlDeviceGetHandleByUUID)(uuid, &device) != NVML_SUCCESS)
        return nullptr;
    return device;
}

std::optional<uint64_t> held_on(nvmlDevice_t device, pid_t pid) {
    auto* list = NVML(nvmlDeviceGetComputeRunningProcesses_v3);
    if (!list)
        list = NVML(nvmlDeviceGetComputeRunningProcesses_v2);
    std::vector<nvmlProcessInfo_t> processes(1024);
    auto count = static_cast<unsigned>(processes.size());
    if (!device || !list || list(device, &count, processes.data()) != NVML_SUCCESS)
        return {};
    for (unsigned i = 0; i < count; i++)
        if (processes[i].pid == static_cast<unsigned>(pid) && processes[i].usedGpuMemory != nvml::kValueNotAvailable)
            return processes[i].usedGpuMemory;
    return {};
}

std::optional<uint64_t> used_on(nvmlDevice_t device) {
    nvmlMemory_t memory{};
    if (!device || NVML(nvmlDeviceGetMemoryInfo)(device, &memory) != NVML_SUCCESS)
        return {};
    return memory.used;
}

/// Without what is set aside for the driver, which only version 2 tells apart.
std::optional<uint64_t> counted_on(nvmlDevice_t device) {
    nvmlMemory_v2_t memory{};
    memory.version = nvmlMemory_v2;
    auto* ask = NVML(nvmlDeviceGetMemoryInfo_v2);
    if (!device || !ask || ask(device, &memory) != NVML_SUCCESS)
        return {};
    return memory.used;
}

std::optional<uint64_t> plus(std::optional<uint64_t> a, std::optional<uint64_t> b) {
    return a && b ? *a + *b : a ? a : b;
}

}  // namespace

std::optional<int> management_status() {
    static const std::optional<int> status = NVML(nvmlInit_v2) ? std::optional<int>(NVML(nvmlInit_v2)()) : std::nullopt;
    return status;
}

bool has_management() { return management_status() == NVML_SUCCESS; }

std::string driver_version() {
    char text[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE] = {};
    if (!has_management() || NVML(nvmlSystemGetDriverVersion)(text, sizeof text) != NVML_SUCCESS)
        return "unknown";
    return text;
}

std::optional<uint64_t> process_bytes(pid_t pid) {
    std::optional<uint64_t> sum;
    for (nvmlDevice_t device : devices())
        sum = plus(sum, held_on(device, pid));
    return sum;
}

std::optional<uint64_t> process_bytes(pid_t pid, const char* uuid) { return held_on(device_of(uuid), pid); }

std::optional<uint64_t> used_bytes() {
    std::optional<uint64_t> sum;
    for (nvmlDevice_t device : devices())
        sum = plus(sum, used_on(device));
    return sum;
}

std::optional<uint64_t> counted_bytes(const char* uuid) {
    // Our libraries carry the system's names, so it takes a symbol of theirs to tell them.
    void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    return driver && dlsym(driver, "cuslice_marker") ? counted_on(device_of(uuid)) : std::nullopt;
}

}  // namespace cuslice::check
