// SPDX-License-Identifier: Apache-2.0
// Devices: their number, and look-ups by index, UUID, PCI address and serial number.

#include <cstring>

#include "fake/nvml/answer.h"
#include "fake/nvml/identity.h"

using namespace cuslice::fake;
using namespace cuslice::nvml;

namespace {

/// The GPU, or the MIG instance, for which `is` holds; `missing` if there is none.
template <typename Is>
nvmlReturn_t by(nvmlDevice_t* out, nvmlReturn_t missing, Is&& is) {
    unsigned count = 0;
    CUSLICE_TRY(nvmlDeviceGetCount_v2(&count));
    if (out == nullptr)
        return answered(NVML_ERROR_INVALID_ARGUMENT);
    for (unsigned i = 0; i < count; i++) {
        nvmlDevice_t handle = nullptr;
        CUSLICE_TRY(nvmlDeviceGetHandleByIndex_v2(i, &handle));
        CUSLICE_FIND(NvmlDevice, device, answered(nvml_state().find(handle, device)));
        const size_t gpu = nvml_state().place_of(*device);
        size_t found = is(device->spec) ? gpu : NvmlDevice::kNone;
        for (unsigned place = 0; found == NvmlDevice::kNone && place < device->spec.mig.size(); place++) {
            const size_t instance = nvml_state().instance(gpu, place);
            if (is(nvml_state().devices()[instance].spec))
                found = instance;
        }
        if (found == NvmlDevice::kNone)
            continue;
        *out = nvml_state().handle(found);
        return NVML_SUCCESS;
    }
    return answered(missing);
}

nvmlReturn_t by_uuid(const char* text, nvmlDevice_t* out) {
    if (text == nullptr)
        return NVML_ERROR_INVALID_ARGUMENT;
    return by(out, NVML_ERROR_NOT_FOUND, [&](const GpuSpec& spec) { return uuid_text(spec) == text; });
}

nvmlReturn_t by_pci(const char* text, nvmlDevice_t* out) {
    PciAddress pci;
    if (text == nullptr || !parse_pci(text, pci))
        return NVML_ERROR_INVALID_ARGUMENT;
    return by(out, NVML_ERROR_NOT_FOUND, [&](const GpuSpec& spec) { return spec.pci == pci; });
}

}  // namespace

namespace cuslice::fake {

std::string serial_of(const GpuSpec& spec) {
    if (spec.brand == "geforce")
        return "";  // consumer boards have none
    uint64_t bits = 0;
    std::memcpy(&bits, spec.uuid.data(), sizeof bits);
    const std::string digits = std::to_string(bits % 1000000000000ULL);
    return "1" + std::string(12 - digits.size(), '0') + digits;
}

}  // namespace cuslice::fake

CUSLICE_NVML(nvmlDeviceGetCount, count) { return nvmlDeviceGetCount_v2(count); }
CUSLICE_NVML(nvmlDeviceGetCount_v2, count) {
    if (!nvml_state().started())
        return answered(NVML_ERROR_UNINITIALIZED);
    if (count == nullptr)
        return answered(NVML_ERROR_INVALID_ARGUMENT);
    *count = static_cast<unsigned>(nvml_state().gpus());
    return NVML_SUCCESS;
}

CUSLICE_NVML(nvmlDeviceGetHandleByIndex, index, out) { return nvmlDeviceGetHandleByIndex_v2(index, out); }
CUSLICE_NVML(nvmlDeviceGetHandleByIndex_v2, index, out) {
    if (!nvml_state().started())
        return answered(NVML_ERROR_UNINITIALIZED);
    if (out == nullptr || index >= nvml_state().gpus())
        return answered(NVML_ERROR_INVALID_ARGUMENT);
    *out = nvml_state().handle(index);
    return NVML_SUCCESS;
}

CUSLICE_NVML(nvmlDeviceGetHandleByUUID, uuid, out) { return by_uuid(uuid, out); }
CUSLICE_NVML(nvmlDeviceGetHandleByPciBusId, id, out) { return nvmlDeviceGetHandleByPciBusId_v2(id, out); }
CUSLICE_NVML(nvmlDeviceGetHandleByPciBusId_v2, id, out) { return by_pci(id, out); }

CUSLICE_NVML(nvmlDeviceGetHandleByUUIDV, uuid, out) {
    if (uuid == nullptr)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (uuid->version != struct_version<nvmlUUID_v1_t>(1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (uuid->type == NVML_UUID_TYPE_ASCII) {
        char text[sizeof uuid->value.str + 1] = {};
        std::memcpy(text, uuid->value.str, sizeof uuid->value.str);
        return by_uuid(text, out);
    }
    if (uuid->type != NVML_UUID_TYPE_BINARY)
        return NVML_ERROR_INVALID_ARGUMENT;
    return by(out, NVML_ERROR_NOT_FOUND, [&](const GpuSpec& spec) {
        return std::memcmp(spec.uuid.data(), uuid->value.bytes, spec.uuid.size()) == 0;
    });
}

CUSLICE_NVML(nvmlDeviceGetHandleBySerial, serial, out) {
    if (serial == nullptr || *serial == '\0')
        return NVML_ERROR_INVALID_ARGUMENT;
    return by(out, NVML_ERROR_NOT_FOUND, [&](const GpuSpec& spec) { return serial_of(spec) == serial; });
}
