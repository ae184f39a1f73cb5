// What a device is.

#include <cstdio>
#include <cstring>

#include "fake/nvml/answer.h"
#include "fake/nvml/identity.h"

using namespace cuslice::fake;
using namespace cuslice::nvml;

CUSLICE_NVML(nvmlDeviceGetPciInfo_v3);

namespace {

/// The 8-digit domain of the newer form; the older has 4.
std::string long_pci_text(const PciAddress& pci) {
    char text[32];
    std::snprintf(text, sizeof text, "%08X:%02X:%02X.0", pci.domain, pci.bus, pci.device);
    return text;
}

std::string short_pci_text(const PciAddress& pci) {
    char text[32];
    std::snprintf(text, sizeof text, "%04X:%02X:%02X.0", pci.domain, pci.bus, pci.device);
    return text;
}

template <std::size_t size>
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

/// What NVML says of GPUs and not of the instances that they are divided into.
template <typename F>
Return with_gpu(Device handle, const void* out, F&& f) {
    return with_device(handle, out, [&](const NvmlDevice& device) {
        return device.spec.is_instance ? ERROR_INVALID_ARGUMENT : f(device);
    });
}

Return old_pci_info(Device handle, PciInfoV2* out) {
    if (out == nullptr) return answered(ERROR_INVALID_ARGUMENT);
    PciInfo now{};
    if (const Return bad = nvmlDeviceGetPciInfo_v3(handle, &now); bad != SUCCESS) return bad;
    *out = {};
    put(out->busId, now.busIdLegacy);
    out->domain = now.domain;
    out->bus = now.bus;
    out->device = now.device;
    out->pciDeviceId = now.pciDeviceId;
    out->pciSubSystemId = now.pciSubSystemId;
    return SUCCESS;
}

Brand brand_of(const std::string& brand) {
    if (brand == "geforce") return BRAND_GEFORCE;
    if (brand == "tesla") return BRAND_TESLA;
    if (brand == "quadro") return BRAND_QUADRO;
    if (brand == "titan") return BRAND_TITAN;
    return BRAND_NVIDIA;
}

unsigned architecture_number(const GpuSpec& spec) {
    switch (spec.major * 10 + spec.minor) {
        case 75:
            return ARCH_TURING;
        case 89:
            return ARCH_ADA;
        default:
            break;
    }
    switch (spec.major) {
        case 5:
            return ARCH_MAXWELL;
        case 6:
            return ARCH_PASCAL;
        case 7:
            return ARCH_VOLTA;
        case 8:
            return ARCH_AMPERE;
        case 9:
            return ARCH_HOPPER;
        case 10:
        case 12:
            return ARCH_BLACKWELL;
        default:
            return ARCH_UNKNOWN;
    }
}

Return attributes(Device handle, DeviceAttributes* out) {
    return with_device(handle, out, [&](const NvmlDevice& device) {
        if (!device.spec.is_instance) return ERROR_NOT_SUPPORTED;
        *out = {};
        out->multiprocessorCount = static_cast<unsigned>(device.spec.multiprocessors);
        out->memorySizeMB = (device.spec.memory + device.spec.reserved) >> 20;
        return SUCCESS;
    });
}

}  // namespace

CUSLICE_NVML(nvmlDeviceGetIndex);
Return nvmlDeviceGetIndex(Device handle, unsigned* out) {
    return with_device(handle, out, [&](const NvmlDevice& device) {
        return give(out, device.spec.is_instance ? static_cast<int>(device.place) : device.spec.index);
    });
}

CUSLICE_NVML(nvmlDeviceGetMinorNumber);
Return nvmlDeviceGetMinorNumber(Device handle, unsigned* out) {
    return with_gpu(handle, out, [&](const NvmlDevice& device) { return give(out, device.spec.index); });
}

CUSLICE_NVML(nvmlDeviceGetName);
Return nvmlDeviceGetName(Device handle, char* out, unsigned size) {
    return with_device(handle, out, [&](const NvmlDevice& device) { return copy_text(device.spec.name, out, size); });
}

CUSLICE_NVML(nvmlDeviceGetUUID);
Return nvmlDeviceGetUUID(Device handle, char* out, unsigned size) {
    return with_device(handle, out,
                       [&](const NvmlDevice& device) { return copy_text(uuid_text(device.spec), out, size); });
}

CUSLICE_NVML(nvmlDeviceGetSerial);
Return nvmlDeviceGetSerial(Device handle, char* out, unsigned size) {
    return with_device(handle, out, [&](const NvmlDevice& device) {
        const std::string serial = serial_of(device.spec);
        return serial.empty() ? ERROR_NOT_SUPPORTED : copy_text(serial, out, size);
    });
}

CUSLICE_NVML(nvmlDeviceGetVbiosVersion);
Return nvmlDeviceGetVbiosVersion(Device handle, char* out, unsigned size) {
    return with_device(handle, out, [&](const NvmlDevice&) { return copy_text("00.00.00.00.FA", out, size); });
}

CUSLICE_NVML(nvmlDeviceGetBoardPartNumber);
Return nvmlDeviceGetBoardPartNumber(Device handle, char* out, unsigned size) {
    return with_device(handle, out, [&](const NvmlDevice& device) {
        return serial_of(device.spec).empty() ? ERROR_NOT_SUPPORTED : copy_text("900-FAKE-0000-000", out, size);
    });
}

CUSLICE_NVML(nvmlDeviceGetBoardId);
Return nvmlDeviceGetBoardId(Device handle, unsigned* out) {
    return with_device(handle, out, [&](const NvmlDevice& device) { return give(out, device.spec.pci.bus << 8); });
}

CUSLICE_NVML(nvmlDeviceGetMultiGpuBoard);
Return nvmlDeviceGetMultiGpuBoard(Device handle, unsigned* out) {
    return with_device(handle, out, [&](const NvmlDevice&) { return give(out, 0); });
}

CUSLICE_NVML(nvmlDeviceGetBrand);
Return nvmlDeviceGetBrand(Device handle, Brand* out) {
    return with_device(handle, out, [&](const NvmlDevice& device) { return give(out, brand_of(device.spec.brand)); });
}

CUSLICE_NVML(nvmlDeviceGetArchitecture);
Return nvmlDeviceGetArchitecture(Device handle, unsigned* out) {
    return with_device(handle, out,
                       [&](const NvmlDevice& device) { return give(out, architecture_number(device.spec)); });
}

CUSLICE_NVML(nvmlDeviceGetCudaComputeCapability);
Return nvmlDeviceGetCudaComputeCapability(Device handle, int* major, int* minor) {
    return with_device(handle, major, [&](const NvmlDevice& device) {
        if (minor == nullptr) return ERROR_INVALID_ARGUMENT;
        *major = device.spec.major;
        *minor = device.spec.minor;
        return SUCCESS;
    });
}

CUSLICE_NVML(nvmlDeviceGetNumGpuCores);
Return nvmlDeviceGetNumGpuCores(Device handle, unsigned* out) {
    return with_device(handle, out, [&](const NvmlDevice& device) {
        return give(out, device.spec.multiprocessors * device.spec.cores_per_multiprocessor);
    });
}

CUSLICE_NVML(nvmlDeviceGetAttributes);
Return nvmlDeviceGetAttributes(Device handle, DeviceAttributes* out) { return attributes(handle, out); }
CUSLICE_NVML(nvmlDeviceGetAttributes_v2);
Return nvmlDeviceGetAttributes_v2(Device handle, DeviceAttributes* out) { return attributes(handle, out); }

CUSLICE_NVML(nvmlDeviceGetPciInfo_v2);
CUSLICE_NVML(nvmlDeviceGetPciInfo);
Return nvmlDeviceGetPciInfo(Device handle, PciInfoV2* out) { return nvmlDeviceGetPciInfo_v2(handle, out); }
Return nvmlDeviceGetPciInfo_v2(Device handle, PciInfoV2* out) { return old_pci_info(handle, out); }

Return nvmlDeviceGetPciInfo_v3(Device handle, PciInfo* out) {
    return with_gpu(handle, out, [&](const NvmlDevice& device) {
        *out = {};
        put(out->busIdLegacy, short_pci_text(device.spec.pci));
        put(out->busId, long_pci_text(device.spec.pci));
        put_address(*out, device.spec);
        return SUCCESS;
    });
}

CUSLICE_NVML(nvmlDeviceGetPciInfoExt);
Return nvmlDeviceGetPciInfoExt(Device handle, PciInfoExt* out) {
    return with_gpu(handle, out, [&](const NvmlDevice& device) {
        if (out->version != struct_version<PciInfoExt>(1)) return ERROR_ARGUMENT_VERSION_MISMATCH;
        put_address(*out, device.spec);
        put(out->busId, long_pci_text(device.spec.pci));
        out->baseClass = 3;  // display controller
        out->subClass = device.spec.brand == "geforce" ? 0 : 2;
        return SUCCESS;
    });
}

CUSLICE_NVML(nvmlDeviceGetMaxPcieLinkGeneration);
Return nvmlDeviceGetMaxPcieLinkGeneration(Device handle, unsigned* out) {
    return with_device(handle, out, [&](const NvmlDevice& device) { return give(out, device.spec.pcie_generation); });
}

CUSLICE_NVML(nvmlDeviceGetCurrPcieLinkGeneration);
Return nvmlDeviceGetCurrPcieLinkGeneration(Device handle, unsigned* out) {
    return nvmlDeviceGetMaxPcieLinkGeneration(handle, out);
}

CUSLICE_NVML(nvmlDeviceGetMaxPcieLinkWidth);
Return nvmlDeviceGetMaxPcieLinkWidth(Device handle, unsigned* out) {
    return with_device(handle, out, [&](const NvmlDevice& device) { return give(out, device.spec.pcie_width); });
}

CUSLICE_NVML(nvmlDeviceGetCurrPcieLinkWidth);
Return nvmlDeviceGetCurrPcieLinkWidth(Device handle, unsigned* out) {
    return nvmlDeviceGetMaxPcieLinkWidth(handle, out);
}

CUSLICE_NVML(nvmlDeviceGetMemoryBusWidth);
Return nvmlDeviceGetMemoryBusWidth(Device handle, unsigned* out) {
    return with_device(handle, out, [&](const NvmlDevice& device) { return give(out, device.spec.memory_bus_width); });
}

CUSLICE_NVML(nvmlDeviceGetTopologyCommonAncestor);
Return nvmlDeviceGetTopologyCommonAncestor(Device handle, Device other_handle, GpuTopologyLevel* out) {
    NvmlDevice* other = nullptr;
    if (const Return bad = nvml_state().find(other_handle, other); bad != SUCCESS) return bad;
    return with_device(handle, out, [&](const NvmlDevice&) {
        return give(out, handle == other_handle ? TOPOLOGY_INTERNAL : TOPOLOGY_NODE);
    });
}

CUSLICE_NVML(nvmlDeviceGetP2PStatus);
Return nvmlDeviceGetP2PStatus(Device handle, Device other_handle, GpuP2PCapsIndex index, GpuP2PStatus* out) {
    GpuTopologyLevel level{};
    if (const Return bad = nvmlDeviceGetTopologyCommonAncestor(handle, other_handle, &level); bad != SUCCESS)
        return bad;
    NvmlDevice* other = nullptr;
    if (const Return bad = nvml_state().find(other_handle, other); bad != SUCCESS) return bad;
    if (static_cast<unsigned>(index) > P2P_CAPS_INDEX_PCI) return ERROR_INVALID_ARGUMENT;
    return with_device(handle, out, [&](const NvmlDevice& device) {
        const bool reachable = device.spec.major >= 6 && device.spec.major == other->spec.major;
        const bool linked = reachable && device.spec.nvlink && other->spec.nvlink;
        const bool needs_link = index == P2P_CAPS_INDEX_NVLINK || index == P2P_CAPS_INDEX_ATOMICS;
        return give(out, (needs_link ? linked : reachable) ? P2P_STATUS_OK : P2P_STATUS_NOT_SUPPORTED);
    });
}

CUSLICE_NVML(nvmlDeviceOnSameBoard);
Return nvmlDeviceOnSameBoard(Device handle, Device other_handle, int* out) {
    NvmlDevice* other = nullptr;
    if (const Return bad = nvml_state().find(other_handle, other); bad != SUCCESS) return bad;
    return with_device(handle, out, [&](const NvmlDevice&) { return give(out, handle == other_handle); });
}
