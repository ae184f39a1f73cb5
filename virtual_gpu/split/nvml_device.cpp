// Which GPUs NVML shows, and what tells them apart.
#include <cctype>
#include <cstdio>
#include <cstring>

#include "virtual_gpu/driver/nvml_table.h"
#include "virtual_gpu/split/nvml.h"
#include "virtual_gpu/split/nvml_functions.h"
#include "virtual_gpu/split/pci_address.h"

namespace cuslice {

namespace {

using nvml::Device;
using nvml::Return;

Return count_of(unsigned* count) {
    if (!virtual_nvml().is_open()) return nvml::ERROR_UNINITIALIZED;
    if (!count) return nvml::ERROR_INVALID_ARGUMENT;
    *count = virtual_nvml().count();
    return nvml::SUCCESS;
}

Return by_index(unsigned index, Device* handle) {
    if (!virtual_nvml().is_open()) return nvml::ERROR_UNINITIALIZED;
    const VirtualNvmlDevice* device = virtual_nvml().device(index);
    if (!device || !handle) return nvml::ERROR_INVALID_ARGUMENT;
    *handle = device->handle();
    return nvml::SUCCESS;
}

// The one for which `is(identity)` holds. Whoever is shown the physical GPUs (NVIDIA's runtime, and a library that asks
// it, as NCCL does) knows them by their own names: such a name stands for the GPU's first part. It is never an answer.
template <typename Is>
Return by(Device* handle, Is is) {
    if (!virtual_nvml().is_open()) return nvml::ERROR_UNINITIALIZED;
    if (!handle) return nvml::ERROR_INVALID_ARGUMENT;
    const VirtualNvmlDevice* found = nullptr;
    for (unsigned i = 0; i < virtual_nvml().count() && !found; i++)
        if (is(virtual_nvml().device(i)->identity)) found = virtual_nvml().device(i);
    for (unsigned i = 0; i < virtual_nvml().count() && !found; i++)
        if (is(*virtual_nvml().device(i)->gpu)) found = virtual_nvml().first_of(virtual_nvml().device(i)->physical);
    if (!found) return nvml::ERROR_NOT_FOUND;
    *handle = found->handle();
    return nvml::SUCCESS;
}

Return by_uuid(const char* uuid, Device* handle) {
    if (!uuid) return nvml::ERROR_INVALID_ARGUMENT;
    return by(handle, [&](const GpuIdentity& gpu) { return std::strcmp(gpu.uuid, uuid) == 0; });
}

Return by_pci(const char* text, Device* handle) {
    PciAddress wanted;
    if (!text || !read_pci(text, &wanted)) return nvml::ERROR_INVALID_ARGUMENT;
    return by(handle, [&](const GpuIdentity& gpu) {
        PciAddress here;
        return read_pci(gpu.pci, &here) && here == wanted;
    });
}

// The sixteen bytes as nvidia-smi writes them, behind "GPU-" or "MIG-".
bool has_bytes(const GpuIdentity& gpu, const unsigned char (&bytes)[16]) {
    char text[48];
    unsigned length = 0;
    for (const unsigned char byte : bytes) {
        if (length == 8 || length == 13 || length == 18 || length == 23) text[length++] = '-';
        length += static_cast<unsigned>(std::snprintf(text + length, sizeof(text) - length, "%02x", byte));
    }
    return std::strlen(gpu.uuid) > 4 && std::strcmp(gpu.uuid + 4, text) == 0;
}

// Null for a whole GPU, whose own answer is right, and where the answer is an error.
const VirtualNvmlDevice* part_of(Device handle, Return result) {
    const VirtualNvmlDevice* device = virtual_nvml().find(handle);
    return result == nvml::SUCCESS && device && device->part.split ? device : nullptr;
}

Device physical(Device handle) {
    const VirtualNvmlDevice* device = virtual_nvml().find(handle);
    return device ? device->physical : handle;
}

// Puts a part's address into any of NVML's structures.
template <typename Info>
bool put_address(const VirtualNvmlDevice& device, Info* info, PciAddress* pci) {
    if (!read_pci(device.identity.pci, pci)) return false;
    info->domain = pci->domain;
    info->bus = pci->bus;
    info->device = pci->device;
    return true;
}

template <std::size_t kSize>
void put_text(char (&text)[kSize], const char* form, const PciAddress& pci) {
    std::snprintf(text, kSize, form, pci.domain, pci.bus, pci.device, pci.function);
}
constexpr char kShort[] = "%04X:%02X:%02X.%X", kLong[] = "%08X:%02X:%02X.%X";

template <typename Call>
Return old_pci_info(Device handle, nvml::PciInfoV2* info, Call call) {
    const Return result = call(physical(handle), info);
    PciAddress pci;
    if (const VirtualNvmlDevice* part = part_of(handle, result); part && put_address(*part, info, &pci))
        put_text(info->busId, kShort, pci);
    return result;
}

}  // namespace

namespace split_nvml {

Return nvmlDeviceGetCount(unsigned* count) { return count_of(count); }
Return nvmlDeviceGetCount_v2(unsigned* count) { return count_of(count); }
Return nvmlDeviceGetHandleByIndex(unsigned index, Device* handle) { return by_index(index, handle); }
Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* handle) { return by_index(index, handle); }
Return nvmlDeviceGetHandleByUUID(const char* uuid, Device* handle) { return by_uuid(uuid, handle); }
Return nvmlDeviceGetHandleByPciBusId(const char* pci, Device* handle) { return by_pci(pci, handle); }
Return nvmlDeviceGetHandleByPciBusId_v2(const char* pci, Device* handle) { return by_pci(pci, handle); }

Return nvmlDeviceGetHandleByUUIDV(const nvml::Uuid* uuid, Device* handle) {
    if (!uuid) return nvml::ERROR_INVALID_ARGUMENT;
    if (uuid->version != nvml::struct_version<nvml::Uuid>(1)) return nvml::ERROR_ARGUMENT_VERSION_MISMATCH;
    if (uuid->type == nvml::UUID_TYPE_BINARY)
        return by(handle, [&](const GpuIdentity& gpu) { return has_bytes(gpu, uuid->value.bytes); });
    if (uuid->type != nvml::UUID_TYPE_ASCII) return nvml::ERROR_INVALID_ARGUMENT;
    char text[sizeof(uuid->value.str) + 1] = {};
    std::memcpy(text, uuid->value.str, sizeof(uuid->value.str));
    return by_uuid(text, handle);
}

// A serial number is the board's, which all parts share.
Return nvmlDeviceGetHandleBySerial(const char* serial, Device* handle) {
    Device found = nullptr;
    if (!handle) return nvml::ERROR_INVALID_ARGUMENT;
    const Return result = CUSLICE_PHYSICAL_NVML(nvmlDeviceGetHandleBySerial)(serial, &found);
    if (result != nvml::SUCCESS) return result;
    const VirtualNvmlDevice* first = virtual_nvml().first_of(found);
    if (!first) return nvml::ERROR_NOT_FOUND;
    *handle = first->handle();
    return nvml::SUCCESS;
}

Return nvmlDeviceGetIndex(Device handle, unsigned* index) {
    const Return result = CUSLICE_PHYSICAL_NVML(nvmlDeviceGetIndex)(physical(handle), index);
    const VirtualNvmlDevice* device = virtual_nvml().find(handle);
    if (result == nvml::SUCCESS && device) *index = device->index;
    return result;
}

Return nvmlDeviceGetUUID(Device handle, char* text, unsigned size) {
    const VirtualNvmlDevice* part = part_of(handle, nvml::SUCCESS);
    if (!part) return CUSLICE_PHYSICAL_NVML(nvmlDeviceGetUUID)(physical(handle), text, size);
    if (!text) return nvml::ERROR_INVALID_ARGUMENT;
    const std::size_t length = std::strlen(part->identity.uuid);
    if (size <= length) return nvml::ERROR_INSUFFICIENT_SIZE;
    std::memcpy(text, part->identity.uuid, length + 1);
    return nvml::SUCCESS;
}

Return nvmlDeviceGetPciInfo(Device handle, nvml::PciInfoV2* info) {
    return old_pci_info(handle, info, CUSLICE_PHYSICAL_NVML(nvmlDeviceGetPciInfo));
}

Return nvmlDeviceGetPciInfo_v2(Device handle, nvml::PciInfoV2* info) {
    return old_pci_info(handle, info, CUSLICE_PHYSICAL_NVML(nvmlDeviceGetPciInfo_v2));
}

Return nvmlDeviceGetPciInfo_v3(Device handle, nvml::PciInfo* info) {
    const Return result = CUSLICE_PHYSICAL_NVML(nvmlDeviceGetPciInfo_v3)(physical(handle), info);
    PciAddress pci;
    if (const VirtualNvmlDevice* part = part_of(handle, result); part && put_address(*part, info, &pci)) {
        put_text(info->busIdLegacy, kShort, pci);
        put_text(info->busId, kLong, pci);
    }
    return result;
}

Return nvmlDeviceGetPciInfoExt(Device handle, nvml::PciInfoExt* info) {
    const Return result = CUSLICE_PHYSICAL_NVML(nvmlDeviceGetPciInfoExt)(physical(handle), info);
    PciAddress pci;
    if (const VirtualNvmlDevice* part = part_of(handle, result); part && put_address(*part, info, &pci))
        put_text(info->busId, kLong, pci);
    return result;
}

}  // namespace split_nvml

}  // namespace cuslice
