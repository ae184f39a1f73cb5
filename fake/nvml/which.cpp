// Which devices there are, and how they are found.

#include <cstring>

#include "fake/nvml/answer.h"
#include "fake/nvml/identity.h"

using namespace cuslice::fake;
using namespace cuslice::nvml;

CUSLICE_NVML(nvmlDeviceGetCount_v2);
CUSLICE_NVML(nvmlDeviceGetHandleByIndex_v2);
CUSLICE_NVML(nvmlDeviceGetHandleByPciBusId_v2);

namespace {

/// The GPU, or the MIG instance, for which `is` holds; `missing` if there is none.
template <typename Is>
Return by(Device* out, Return missing, Is&& is) {
    unsigned count = 0;
    if (const Return bad = nvmlDeviceGetCount_v2(&count); bad != SUCCESS) return bad;
    if (out == nullptr) return answered(ERROR_INVALID_ARGUMENT);
    for (unsigned i = 0; i < count; i++) {
        Device handle = nullptr;
        NvmlDevice* device = nullptr;
        if (const Return bad = nvmlDeviceGetHandleByIndex_v2(i, &handle); bad != SUCCESS) return bad;
        if (const Return bad = nvml_state().find(handle, device); bad != SUCCESS) return answered(bad);
        const std::size_t gpu = nvml_state().place_of(*device);
        std::size_t found = is(device->spec) ? gpu : NvmlDevice::none;
        for (unsigned place = 0; found == NvmlDevice::none && place < device->spec.mig.size(); place++) {
            const std::size_t instance = nvml_state().instance(gpu, place);
            if (is(nvml_state().devices()[instance].spec)) found = instance;
        }
        if (found == NvmlDevice::none) continue;
        *out = nvml_state().handle(found);
        return SUCCESS;
    }
    return answered(missing);
}

Return by_uuid(const char* text, Device* out) {
    if (text == nullptr) return ERROR_INVALID_ARGUMENT;
    return by(out, ERROR_NOT_FOUND, [&](const GpuSpec& spec) { return uuid_text(spec) == text; });
}

Return by_pci(const char* text, Device* out) {
    PciAddress pci;
    if (text == nullptr || !parse_pci(text, pci)) return ERROR_INVALID_ARGUMENT;
    return by(out, ERROR_NOT_FOUND, [&](const GpuSpec& spec) { return spec.pci == pci; });
}

}  // namespace

namespace cuslice::fake {

std::string serial_of(const GpuSpec& spec) {
    if (spec.brand == "geforce") return "";  // consumer boards have none
    std::uint64_t bits = 0;
    std::memcpy(&bits, spec.uuid.data(), sizeof bits);
    const std::string digits = std::to_string(bits % 1000000000000ULL);
    return "1" + std::string(12 - digits.size(), '0') + digits;
}

}  // namespace cuslice::fake

CUSLICE_NVML(nvmlDeviceGetCount);
Return nvmlDeviceGetCount(unsigned* count) { return nvmlDeviceGetCount_v2(count); }
Return nvmlDeviceGetCount_v2(unsigned* count) {
    if (!nvml_state().started()) return answered(ERROR_UNINITIALIZED);
    if (count == nullptr) return answered(ERROR_INVALID_ARGUMENT);
    *count = static_cast<unsigned>(nvml_state().gpus());
    return SUCCESS;
}

CUSLICE_NVML(nvmlDeviceGetHandleByIndex);
Return nvmlDeviceGetHandleByIndex(unsigned index, Device* out) { return nvmlDeviceGetHandleByIndex_v2(index, out); }
Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* out) {
    if (!nvml_state().started()) return answered(ERROR_UNINITIALIZED);
    if (out == nullptr || index >= nvml_state().gpus()) return answered(ERROR_INVALID_ARGUMENT);
    *out = nvml_state().handle(index);
    return SUCCESS;
}

CUSLICE_NVML(nvmlDeviceGetHandleByUUID);
Return nvmlDeviceGetHandleByUUID(const char* uuid, Device* out) { return by_uuid(uuid, out); }
CUSLICE_NVML(nvmlDeviceGetHandleByPciBusId);
Return nvmlDeviceGetHandleByPciBusId(const char* id, Device* out) { return nvmlDeviceGetHandleByPciBusId_v2(id, out); }
Return nvmlDeviceGetHandleByPciBusId_v2(const char* id, Device* out) { return by_pci(id, out); }

CUSLICE_NVML(nvmlDeviceGetHandleByUUIDV);
Return nvmlDeviceGetHandleByUUIDV(const cuslice::nvml::Uuid* uuid, Device* out) {
    if (uuid == nullptr) return ERROR_INVALID_ARGUMENT;
    if (uuid->version != struct_version<cuslice::nvml::Uuid>(1)) return ERROR_ARGUMENT_VERSION_MISMATCH;
    if (uuid->type == UUID_TYPE_ASCII) {
        char text[sizeof uuid->value.str + 1] = {};
        std::memcpy(text, uuid->value.str, sizeof uuid->value.str);
        return by_uuid(text, out);
    }
    if (uuid->type != UUID_TYPE_BINARY) return ERROR_INVALID_ARGUMENT;
    return by(out, ERROR_NOT_FOUND, [&](const GpuSpec& spec) {
        return std::memcmp(spec.uuid.data(), uuid->value.bytes, spec.uuid.size()) == 0;
    });
}

CUSLICE_NVML(nvmlDeviceGetHandleBySerial);
Return nvmlDeviceGetHandleBySerial(const char* serial, Device* out) {
    if (serial == nullptr || *serial == '\0') return ERROR_INVALID_ARGUMENT;
    return by(out, ERROR_NOT_FOUND, [&](const GpuSpec& spec) { return serial_of(spec) == serial; });
}
