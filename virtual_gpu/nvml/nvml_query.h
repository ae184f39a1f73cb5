// SPDX-License-Identifier: Apache-2.0
// Asks NVML about the machine. The library asks through its table, the launcher through a library that it opened
// itself; both have to come to the same answers, so the questions are written once, here.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>

#include "config/gpu_selector.h"
#include "virtual_gpu/driver/nvml.h"

// The functions that are called here. `Nvml` below has a member function of the same name for each: it calls NVML's,
// and returns ERROR_FUNCTION_NOT_FOUND where this NVML lacks it.
#define CUSLICE_NVML_QUERY_FUNCTIONS(F)    \
    F(nvmlDeviceGetCount_v2)               \
    F(nvmlDeviceGetHandleByIndex_v2)       \
    F(nvmlDeviceGetHandleByUUID)           \
    F(nvmlDeviceGetIndex)                  \
    F(nvmlDeviceGetUUID)                   \
    F(nvmlDeviceGetPciInfo_v3)             \
    F(nvmlDeviceGetName)                   \
    F(nvmlDeviceGetMemoryInfo)             \
    F(nvmlDeviceGetMemoryInfo_v2)          \
    F(nvmlDeviceGetMigMode)                \
    F(nvmlDeviceGetMaxMigDeviceCount)      \
    F(nvmlDeviceGetMigDeviceHandleByIndex) \
    F(nvmlDeviceGetDeviceHandleFromMigDeviceHandle)

namespace cuslice {

/// A GPU's memory in CUDA's bytes: `total` is what cuDeviceTotalMem tells, and `used` what everybody together holds of
/// it. What the driver keeps for itself is in neither.
struct GpuMemory {
    uint64_t total = 0, used = 0;
};

/// Since release 510 NVML's total contains what the driver keeps for itself, and so does the older function's `used`;
/// the newer one tells them apart. Before 510 there is the older one alone, and neither figure contains it.
template <typename Nvml>
nvmlReturn_t query_memory(const Nvml& nvml, nvmlDevice_t gpu, GpuMemory& memory) {
    nvmlMemory_v2_t now{};
    now.version = nvml::struct_version<nvmlMemory_v2_t>(2);
    nvmlReturn_t result = nvml.nvmlDeviceGetMemoryInfo_v2(gpu, &now);
    if (result == NVML_SUCCESS) {
        memory = {now.total - now.reserved, now.used};
        return result;
    }
    if (result != NVML_ERROR_FUNCTION_NOT_FOUND)
        return result;
    nvmlMemory_t old{};
    result = nvml.nvmlDeviceGetMemoryInfo(gpu, &old);
    if (result == NVML_SUCCESS)
        memory = {old.total, old.used};
    return result;
}

/// How settings name a GPU, or a MIG instance: that has its GPU's PCI id and no index. False if any of it can't be had.
template <typename Nvml>
bool query_identity(const Nvml& nvml, nvmlDevice_t gpu, GpuIdentity& identity) {
    char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE] = {};
    nvmlPciInfo_t pci{};
    nvmlDevice_t whole = gpu;
    unsigned index = 0;
    if (nvml.nvmlDeviceGetUUID(gpu, uuid, sizeof uuid) != NVML_SUCCESS)
        return false;
    const bool instance = is_mig_uuid(uuid);
    if (instance && nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(gpu, &whole) != NVML_SUCCESS)
        return false;
    if (!instance && nvml.nvmlDeviceGetIndex(gpu, &index) != NVML_SUCCESS)
        return false;
    if (nvml.nvmlDeviceGetPciInfo_v3(whole, &pci) != NVML_SUCCESS)
        return false;
    identity.index = instance ? -1 : static_cast<int>(index);
    if (std::strlen(uuid) >= sizeof identity.uuid || strnlen(pci.busId, sizeof pci.busId) >= sizeof identity.pci)
        return false;
    std::memcpy(identity.uuid, uuid, std::strlen(uuid) + 1);
    std::memcpy(identity.pci, pci.busId, std::strlen(pci.busId) + 1);
    return true;
}

/// Lists the devices of the GPU with this index that CUDA can run on: the GPU itself, or its instances where MIG
/// divides it. Returns how many there are.
template <typename Nvml>
size_t query_devices_of(const Nvml& nvml, unsigned index, std::span<nvmlDevice_t> devices) {
    nvmlDevice_t gpu = nullptr, instance = nullptr;
    unsigned mig = 0, pending = 0, places = 0;
    if (devices.empty() || nvml.nvmlDeviceGetHandleByIndex_v2(index, &gpu) != NVML_SUCCESS)
        return 0;
    if (nvml.nvmlDeviceGetMigMode(gpu, &mig, &pending) != NVML_SUCCESS || mig == 0) {
        devices[0] = gpu;
        return 1;
    }
    size_t count = 0;
    if (nvml.nvmlDeviceGetMaxMigDeviceCount(gpu, &places) != NVML_SUCCESS)
        places = 0;
    for (unsigned place = 0; place < places && count < devices.size(); place++)
        if (nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, place, &instance) == NVML_SUCCESS)
            devices[count++] = instance;
    return count;
}

/// All that CUDA can run on, in PCI order. Returns how many.
template <typename Nvml>
size_t query_devices(const Nvml& nvml, std::span<nvmlDevice_t> devices) {
    size_t count = 0;
    unsigned gpus = 0;
    if (nvml.nvmlDeviceGetCount_v2(&gpus) != NVML_SUCCESS)
        return 0;
    for (unsigned i = 0; i < gpus; i++)
        count += query_devices_of(nvml, i, devices.subspan(count));
    return count;
}

}  // namespace cuslice
