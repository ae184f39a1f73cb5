// SPDX-License-Identifier: Apache-2.0
// Identity and fixed properties of a device.

#include <cstdio>
#include <cstring>

#include "fake/nvml/answer.h"
#include "fake/nvml/identity.h"

using namespace cuslice::fake;
using namespace cuslice::nvml;

namespace {

/// The 8-digit domain of the newer form; the older has 4.
std::string long_pci_text(const PciAddress& pci) {
    char text[32];
    std::snprintf(text, sizeof text, "%08X:%02X:%02X.0", pci.domain, pci.bus, pci.device);
    return text;
}

template <size_t size>
void put(char (&out)[size], const std::string& text) {
    std::memset(out, 0, size);
    text.copy(out, size - 1);
}

template <typename Info>
void put_address(Info& info, const GpuSpec& spec) {
    info.domain = spec.pci.domain;
    info.bus = spec.pci.bus;
    info.device = spec.pci.device;
    info.pciDeviceId = static_cast<unsigned>(spec.pci_device_id);
    info.pciSubSystemId = static_cast<unsigned>(spec.pci_device_id);
}

/// Calls f(device) for a GPU; NVML_ERROR_INVALID_ARGUMENT for a MIG instance.
template <typename F>
nvmlReturn_t with_gpu(nvmlDevice_t handle, const void* out, F&& f) {
    return with_device(handle, out, [&](const NvmlDevice& device) {
        return device.spec.is_instance ? NVML_ERROR_INVALID_ARGUMENT : f(device);
    });
}

nvmlReturn_t old_pci_info(nvmlDevice_t handle, nvmlPciInfo_t* place) {
    auto* const out = reinterpret_cast<PciInfoV2*>(place);
    if (out == nullptr)
        return answered(NVML_ERROR_INVALID_ARGUMENT);
    nvmlPciInfo_t now{};
    CUSLICE_TRY(nvmlDeviceGetPciInfo_v3(handle, &now));
    *out = {};
    put(out->busId, now.busIdLegacy);
    out->domain = now.domain;
    out->bus = now.bus;
    out->device = now.device;
    out->pciDeviceId = now.pciDeviceId;
    out->pciSubSystemId = now.pciSubSystemId;
    return NVML_SUCCESS;
}

nvmlBrandType_t brand_of(const std::string& brand) {
    if (brand == "geforce")
        return NVML_BRAND_GEFORCE;
    if (brand == "tesla")
        return NVML_BRAND_TESLA;
    if (brand == "quadro")
        return NVML_BRAND_QUADRO;
    if (brand == "titan")
        return NVML_BRAND_TITAN;
    return NVML_BRAND_NVIDIA;
}

unsigned architecture_number(const GpuSpec& spec) {
    switch (spec.capability()) {
        case 75:
            return NVML_DEVICE_ARCH_TURING;
        case 89:
            return NVML_DEVICE_ARCH_ADA;
        default:
            break;
    }
    switch (spec.major) {
        case 5:
            return NVML_DEVICE_ARCH_MAXWELL;
        case 6:
            return NVML_DEVICE_ARCH_PASCAL;
        case 7:
            return NVML_DEVICE_ARCH_VOLTA;
        case 8:
            return NVML_DEVICE_ARCH_AMPERE;
        case 9:
            return NVML_DEVICE_ARCH_HOPPER;
        case 10:
        case 12:
            return NVML_DEVICE_ARCH_BLACKWELL;
        default:
            return NVML_DEVICE_ARCH_UNKNOWN;
    }
}

nvmlReturn_t attributes(nvmlDevice_t handle, nvmlDeviceAttributes_t* out) {
    return with_device(handle, out, [&](const NvmlDevice& device) {
        if (!device.spec.is_instance)
            return NVML_ERROR_NOT_SUPPORTED;
        *out = {};
        out->multiprocessorCount = static_cast<unsigned>(device.spec.multiprocessors);
        out->memorySizeMB = (device.spec.memory + device.spec.reserved) >> 20;
        return NVML_SUCCESS;
    });
}

}  // namespace

CUSLICE_NVML_DEVICE(nvmlDeviceGetIndex, out, handle, out) {
    return give(out, device.spec.is_instance ? static_cast<int>(device.place) : device.spec.index);
}

CUSLICE_NVML(nvmlDeviceGetMinorNumber, handle, out) {
    return with_gpu(handle, out, [&](const NvmlDevice& device) { return give(out, device.spec.index); });
}

CUSLICE_NVML_DEVICE(nvmlDeviceGetName, out, handle, out, size) { return copy_text(device.spec.name, out, size); }

CUSLICE_NVML_DEVICE(nvmlDeviceGetUUID, out, handle, out, size) { return copy_text(uuid_text(device.spec), out, size); }

CUSLICE_NVML_DEVICE(nvmlDeviceGetSerial, out, handle, out, size) {
    const std::string serial = serial_of(device.spec);
    return serial.empty() ? NVML_ERROR_NOT_SUPPORTED : copy_text(serial, out, size);
}

CUSLICE_NVML_DEVICE(nvmlDeviceGetVbiosVersion, out, handle, out, size) {
    return copy_text("00.00.00.00.FA", out, size);
}

CUSLICE_NVML_DEVICE(nvmlDeviceGetBoardPartNumber, out, handle, out, size) {
    return serial_of(device.spec).empty() ? NVML_ERROR_NOT_SUPPORTED : copy_text("900-FAKE-0000-000", out, size);
}

CUSLICE_NVML_DEVICE(nvmlDeviceGetBoardId, out, handle, out) { return give(out, device.spec.pci.bus << 8); }

CUSLICE_NVML_DEVICE(nvmlDeviceGetMultiGpuBoard, out, handle, out) { return give(out, 0); }

CUSLICE_NVML_DEVICE(nvmlDeviceGetBrand, out, handle, out) { return give(out, brand_of(device.spec.brand)); }

CUSLICE_NVML_DEVICE(nvmlDeviceGetArchitecture, out, handle, out) { return give(out, architecture_number(device.spec)); }

CUSLICE_NVML_DEVICE(nvmlDeviceGetCudaComputeCapability, major, handle, major, minor) {
    if (minor == nullptr)
        return NVML_ERROR_INVALID_ARGUMENT;
    *major = device.spec.major;
    *minor = device.spec.minor;
    return NVML_SUCCESS;
}

CUSLICE_NVML_DEVICE(nvmlDeviceGetNumGpuCores, out, handle, out) {
    return give(out, device.spec.multiprocessors * device.spec.cores_per_multiprocessor);
}

CUSLICE_NVML(nvmlDeviceGetAttributes, handle, out) { return attributes(handle, out); }
CUSLICE_NVML(nvmlDeviceGetAttributes_v2, handle, out) { return attributes(handle, out); }

CUSLICE_NVML(nvmlDeviceGetPciInfo, handle, out) { return nvmlDeviceGetPciInfo_v2(handle, out); }
CUSLICE_NVML(nvmlDeviceGetPciInfo_v2, handle, out) { return old_pci_info(handle, out); }

CUSLICE_NVML(nvmlDeviceGetPciInfo_v3, handle, out) {
    return with_gpu(handle, out, [&](const NvmlDevice& device) {
        *out = {};
        put(out->busIdLegacy, pci_text(device.spec.pci));
        put(out->busId, long_pci_text(device.spec.pci));
        put_address(*out, device.spec);
        return NVML_SUCCESS;
    });
}

CUSLICE_NVML(nvmlDeviceGetPciInfoExt, handle, out) {
    return with_gpu(handle, out, [&](const NvmlDevice& device) {
        if (out->version != struct_version<nvmlPciInfoExt_v1_t>(1))
            return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        put_address(*out, device.spec);
        put(out->busId, long_pci_text(device.spec.pci));
        out->baseClass = 3;  // display controller
        out->subClass = device.spec.brand == "geforce" ? 0 : 2;
        return NVML_SUCCESS;
    });
}

CUSLICE_NVML_DEVICE(nvmlDeviceGetMaxPcieLinkGeneration, out, handle, out) {
    return give(out, device.spec.pcie_generation);
}

CUSLICE_NVML(nvmlDeviceGetCurrPcieLinkGeneration, handle, out) {
    return nvmlDeviceGetMaxPcieLinkGeneration(handle, out);
}

CUSLICE_NVML_DEVICE(nvmlDeviceGetMaxPcieLinkWidth, out, handle, out) { return give(out, device.spec.pcie_width); }

CUSLICE_NVML(nvmlDeviceGetCurrPcieLinkWidth, handle, out) { return nvmlDeviceGetMaxPcieLinkWidth(handle, out); }

CUSLICE_NVML_DEVICE(nvmlDeviceGetMemoryBusWidth, out, handle, out) { return give(out, device.spec.memory_bus_width); }

CUSLICE_NVML(nvmlDeviceGetTopologyCommonAncestor, handle, other_handle, out) {
    CUSLICE_FIND(NvmlDevice, other, nvml_state().find(other_handle, other));
    return with_device(handle, out, [&](const NvmlDevice&) {
        return give(out, handle == other_handle ? NVML_TOPOLOGY_INTERNAL : NVML_TOPOLOGY_NODE);
    });
}

CUSLICE_NVML(nvmlDeviceGetP2PStatus, handle, other_handle, index, out) {
    nvmlGpuTopologyLevel_t level{};
    CUSLICE_TRY(nvmlDeviceGetTopologyCommonAncestor(handle, other_handle, &level));
    CUSLICE_FIND(NvmlDevice, other, nvml_state().find(other_handle, other));
    if (static_cast<unsigned>(index) > NVML_P2P_CAPS_INDEX_PCI)
        return NVML_ERROR_INVALID_ARGUMENT;
    return with_device(handle, out, [&](const NvmlDevice& device) {
        const bool reachable = device.spec.major >= 6 && device.spec.major == other->spec.major;
        const bool linked = reachable && device.spec.nvlink && other->spec.nvlink;
        const bool needs_link = index == NVML_P2P_CAPS_INDEX_NVLINK || index == NVML_P2P_CAPS_INDEX_ATOMICS;
        return give(out, (needs_link ? linked : reachable) ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED);
    });
}

CUSLICE_NVML(nvmlDeviceOnSameBoard, handle, other_handle, out) {
    CUSLICE_FIND(NvmlDevice, other, nvml_state().find(other_handle, other));
    return with_device(handle, out, [&](const NvmlDevice&) { return give(out, handle == other_handle); });
}
