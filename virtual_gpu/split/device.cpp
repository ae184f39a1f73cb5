// SPDX-License-Identifier: Apache-2.0
// Device functions: the GPUs that there are, and their UUIDs and PCI ids.
#include <cctype>
#include <cstdio>

#include "virtual_gpu/split/functions.h"
#include "virtual_gpu/split/pci_address.h"
#include "virtual_gpu/split/translate.h"

namespace cuslice {

namespace {

bool pci_of(const Split::Device& device, PciAddress* address) { return read_pci(device.identity.pci, address); }

// The sixteen bytes of "GPU-…" or "MIG-…".
void read_uuid(const char* text, CUuuid* uuid) {
    unsigned count = 0, high = 16;
    for (const char* letter = text + 4; *letter && count < 16; letter++) {
        if (!std::isxdigit(static_cast<unsigned char>(*letter)))
            continue;
        const auto digit = static_cast<unsigned>(*letter <= '9' ? *letter - '0' : (*letter | 32) - 'a' + 10);
        if (high == 16) {
            high = digit;
        } else {
            uuid->bytes[count++] = static_cast<char>(high * 16 + digit);
            high = 16;
        }
    }
}

template <typename Call>
CUresult own_uuid(CUuuid* uuid, CUdevice ordinal, Call call) {
    CUdevice physical = ordinal;
    to_physical(physical);
    const CUresult result = call(physical);
    const Split::Device* device = split().partition(ordinal);
    if (result == CUDA_SUCCESS && device)
        read_uuid(device->identity.uuid, uuid);
    return result;
}

}  // namespace

namespace split_driver {

CUSLICE_SPLIT(cuDeviceGetCount, count) {
    const CUresult result = CUSLICE_PHYSICAL(cuDeviceGetCount)(count);
    if (result == CUDA_SUCCESS && split().is_open())
        *count = split().count();
    return result;
}

CUSLICE_SPLIT(cuDeviceGet, device, ordinal) {
    CUdevice physical = ordinal;
    to_physical(physical);
    const CUresult result = CUSLICE_PHYSICAL(cuDeviceGet)(device, physical);
    if (result == CUDA_SUCCESS)
        *device = ordinal;
    return result;
}

CUSLICE_SPLIT(cuDeviceGetUuid, uuid, device) {
    return own_uuid(uuid, device, [&](CUdevice physical) { return CUSLICE_PHYSICAL(cuDeviceGetUuid)(uuid, physical); });
}

CUSLICE_SPLIT(cuDeviceGetUuid_v2, uuid, device) {
    return own_uuid(uuid, device,
                    [&](CUdevice physical) { return CUSLICE_PHYSICAL(cuDeviceGetUuid_v2)(uuid, physical); });
}

CUSLICE_SPLIT(cuDeviceGetPCIBusId, text, size, ordinal) {
    CUdevice physical = ordinal;
    to_physical(physical);
    const CUresult result = CUSLICE_PHYSICAL(cuDeviceGetPCIBusId)(text, size, physical);
    const Split::Device* device = split().partition(ordinal);
    PciAddress pci;
    if (result == CUDA_SUCCESS && device && pci_of(*device, &pci))
        std::snprintf(text, static_cast<size_t>(size), "%04X:%02X:%02X.%X", pci.domain, pci.bus, pci.device,
                      pci.function);
    return result;
}

CUSLICE_SPLIT(cuDeviceGetByPCIBusId, device, text) {
    if (!split().is_open() || !device || !text)
        return CUSLICE_PHYSICAL(cuDeviceGetByPCIBusId)(device, text);
    PciAddress wanted, here;
    if (!read_pci(text, &wanted))
        return CUDA_ERROR_INVALID_VALUE;
    int ordinal = 0;
    for (const Split::Device& known : split().devices()) {
        if (pci_of(known, &here) && here == wanted)
            return *device = ordinal, CUDA_SUCCESS;
        ordinal++;
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

CUSLICE_SPLIT(cuDeviceGetAttribute, value, attribute, ordinal) {
    CUdevice physical = ordinal;
    to_physical(physical);
    const CUresult result = CUSLICE_PHYSICAL(cuDeviceGetAttribute)(value, attribute, physical);
    const Split::Device* device = split().partition(ordinal);
    PciAddress pci;
    if (result != CUDA_SUCCESS || !device || !pci_of(*device, &pci))
        return result;
    switch (attribute) {
        case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
            *value = static_cast<int>(pci.domain);
            break;
        case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
            *value = static_cast<int>(pci.bus);
            break;
        case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
            *value = static_cast<int>(pci.device);
            break;
        default:
            break;
    }
    return result;
}

}  // namespace split_driver

}  // namespace cuslice
