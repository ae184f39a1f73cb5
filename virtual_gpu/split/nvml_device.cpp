// SPDX-License-Identifier: Apache-2.0
// NVML's device functions: the GPUs that it shows, and their indices, UUIDs and PCI ids.
#include <cstdio>
#include <cstring>

#include "virtual_gpu/driver/nvml_table.h"
#include "virtual_gpu/split/nvml.h"
#include "virtual_gpu/split/pci_address.h"

namespace cuslice {

namespace {

nvmlReturn_t count_of(unsigned* count) {
    if (!virtual_nvml().is_open())
        return NVML_ERROR_UNINITIALIZED;
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = virtual_nvml().count();
    return NVML_SUCCESS;
}

nvmlReturn_t by_index(unsigned index, nvmlDevice_t* handle) {
    if (!virtual_nvml().is_open())
        return NVML_ERROR_UNINITIALIZED;
    const VirtualNvmlDevice* device = virtual_nvml().device(index);
    if (!device || !handle)
        return NVML_ERROR_INVALID_ARGUMENT;
    *handle = device->handle();
    return NVML_SUCCESS;
}

// The one for which `is(identity)` holds. Whoever is shown the physical GPUs (NVIDIA's runtime, and a library that asks
// it, as NCCL does) knows them by their own names: such a name stands for the GPU's first part. It is never an answer.
template <typename Is>
nvmlReturn_t by(nvmlDevice_t* handle, Is is) {
    if (!virtual_nvml().is_open())
        return NVML_ERROR_UNINITIALIZED;
    if (!handle)
        return NVML_ERROR_INVALID_ARGUMENT;
    const VirtualNvmlDevice* found = nullptr;
    for (unsigned i = 0; i < virtual_nvml().count() && !found; i++)
        if (is(virtual_nvml().device(i)->identity))
            found = virtual_nvml().device(i);
    for (unsigned i = 0; i < virtual_nvml().count() && !found; i++)
        if (is(*virtual_nvml().device(i)->gpu))
            found = virtual_nvml().first_of(virtual_nvml().device(i)->physical);
    if (!found)
        return NVML_ERROR_NOT_FOUND;
    *handle = found->handle();
    return NVML_SUCCESS;
}

nvmlReturn_t by_uuid(const char* uuid, nvmlDevice_t* handle) {
    if (!uuid)
        return NVML_ERROR_INVALID_ARGUMENT;
    return by(handle, [&](const GpuIdentity& gpu) { return std::strcmp(gpu.uuid, uuid) == 0; });
}

nvmlReturn_t by_pci(const char* text, nvmlDevice_t* handle) {
    PciAddress wanted;
    if (!text || !read_pci(text, &wanted))
        return NVML_ERROR_INVALID_ARGUMENT;
    return by(handle, [&](const GpuIdentity& gpu) {
        PciAddress here;
        return read_pci(gpu.pci, &here) && here == wanted;
    });
}

// The sixteen bytes behind "GPU-" or "MIG-".
bool has_bytes(const GpuIdentity& gpu, const unsigned char (&bytes)[16]) {
    constexpr size_t kPrefix = 4;
    char text[sizeof(gpu.uuid)];
    write_uuid(bytes, {}, text);
    return std::strlen(gpu.uuid) > kPrefix && std::strcmp(gpu.uuid + kPrefix, text + kPrefix) == 0;
}

// Null for a whole GPU, whose own answer is right, and where the answer is an error.
const VirtualNvmlDevice* part_of(nvmlDevice_t handle, nvmlReturn_t result) {
    const VirtualNvmlDevice* device = virtual_nvml().find(handle);
    return result == NVML_SUCCESS && device && device->part.split ? device : nullptr;
}

nvmlDevice_t physical(nvmlDevice_t handle) {
    const VirtualNvmlDevice* device = virtual_nvml().find(handle);
    return device ? device->physical : handle;
}

// Puts a part's address into any of NVML's structures.
template <typename Info>
bool put_address(const VirtualNvmlDevice& device, Info* info, PciAddress* pci) {
    if (!read_pci(device.identity.pci, pci))
        return false;
    info->domain = pci->domain;
    info->bus = pci->bus;
    info->device = pci->device;
    return true;
}

template <size_t kSize>
void put_text(char (&text)[kSize], const char* form, const PciAddress& pci) {
    std::snprintf(text, kSize, form, pci.domain, pci.bus, pci.device, pci.function);
}
constexpr char kShort[] = "%04X:%02X:%02X.%X", kLong[] = "%08X:%02X:%02X.%X";

// The older structure is shorter (nvml::PciInfoV2), and the same as far as it is written here.
template <typename Call>
nvmlReturn_t old_pci_info(nvmlDevice_t handle, nvmlPciInfo_t* info, Call call) {
    const nvmlReturn_t result = call(physical(handle), info);
    PciAddress pci;
    if (const VirtualNvmlDevice* part = part_of(handle, result); part && put_address(*part, info, &pci))
        put_text(info->busIdLegacy, kShort, pci);
    return result;
}

}  // namespace

namespace split_nvml {

nvmlReturn_t nvmlDeviceGetCount(unsigned* count) { return count_of(count); }
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) { return count_of(count); }
nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t* handle) { return by_index(index, handle); }
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* handle) { return by_index(index, handle); }
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* handle) { return by_uuid(uuid, handle); }
nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char* pci, nvmlDevice_t* handle) { return by_pci(pci, handle); }
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* pci, nvmlDevice_t* handle) { return by_pci(pci, handle); }

nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_v1_t* uuid, nvmlDevice_t* handle) {
    if (!uuid)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (uuid->version != nvml::struct_version<nvmlUUID_v1_t>(1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (uuid->type == NVML_UUID_TYPE_BINARY)
        return by(handle, [&](const GpuIdentity& gpu) { return has_bytes(gpu, uuid->value.bytes); });
    if (uuid->type != NVML_UUID_TYPE_ASCII)
        return NVML_ERROR_INVALID_ARGUMENT;
    char text[sizeof(uuid->value.str) + 1] = {};
    std::memcpy(text, uuid->value.str, sizeof(uuid->value.str));
    return by_uuid(text, handle);
}

// A serial number is the board's, which all parts share.
nvmlReturn_t nvmlDeviceGetHandleBySerial(const char* serial, nvmlDevice_t* handle) {
    nvmlDevice_t found = nullptr;
    if (!handle)
        return NVML_ERROR_INVALID_ARGUMENT;
    const nvmlReturn_t result = CUSLICE_PHYSICAL_NVML(nvmlDeviceGetHandleBySerial)(serial, &found);
    if (result != NVML_SUCCESS)
        return result;
    const VirtualNvmlDevice* first = virtual_nvml().first_of(found);
    if (!first)
        return NVML_ERROR_NOT_FOUND;
    *handle = first->handle();
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t handle, unsigned* index) {
    const nvmlReturn_t result = CUSLICE_PHYSICAL_NVML(nvmlDeviceGetIndex)(physical(handle), index);
    const VirtualNvmlDevice* device = virtual_nvml().find(handle);
    if (result == NVML_SUCCESS && device)
        *index = device->index;
    return result;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t handle, char* text, unsigned size) {
    const VirtualNvmlDevice* part = part_of(handle, NVML_SUCCESS);
    if (!part)
        return CUSLICE_PHYSICAL_NVML(nvmlDeviceGetUUID)(physical(handle), text, size);
    if (!text)
        return NVML_ERROR_INVALID_ARGUMENT;
    const size_t length = std::strlen(part->identity.uuid);
    if (size <= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    std::memcpy(text, part->identity.uuid, length + 1);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t handle, nvmlPciInfo_t* info) {
    return old_pci_info(handle, info, CUSLICE_PHYSICAL_NVML(nvmlDeviceGetPciInfo));
}

nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t handle, nvmlPciInfo_t* info) {
    return old_pci_info(handle, info, CUSLICE_PHYSICAL_NVML(nvmlDeviceGetPciInfo_v2));
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t handle, nvmlPciInfo_t* info) {
    const nvmlReturn_t result = CUSLICE_PHYSICAL_NVML(nvmlDeviceGetPciInfo_v3)(physical(handle), info);
    PciAddress pci;
    if (const VirtualNvmlDevice* part = part_of(handle, result); part && put_address(*part, info, &pci)) {
        put_text(info->busIdLegacy, kShort, pci);
        put_text(info->busId, kLong, pci);
    }
    return result;
}

nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t handle, nvmlPciInfoExt_v1_t* info) {
    const nvmlReturn_t result = CUSLICE_PHYSICAL_NVML(nvmlDeviceGetPciInfoExt)(physical(handle), info);
    PciAddress pci;
    if (const VirtualNvmlDevice* part = part_of(handle, result); part && put_address(*part, info, &pci))
        put_text(info->busId, kLong, pci);
    return result;
}

}  // namespace split_nvml

}  // namespace cuslice
