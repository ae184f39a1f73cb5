// Which devices there are, and how they are found.

#include <cstring>

#include "virtual_gpu/fake/nvml/identity.h"
#include "virtual_gpu/fake/nvml/state.h"

using namespace cuslice::fake;
using namespace cuslice::nvml;

namespace {

Return count_devices(unsigned* count) {
    if (!nvml_state().started()) return ERROR_UNINITIALIZED;
    if (count == nullptr) return ERROR_INVALID_ARGUMENT;
    *count = static_cast<unsigned>(nvml_state().gpus());
    return SUCCESS;
}

Return by_index(unsigned index, Device* out) {
    if (!nvml_state().started()) return ERROR_UNINITIALIZED;
    if (out == nullptr || index >= nvml_state().gpus()) return ERROR_INVALID_ARGUMENT;
    *out = nvml_state().handle(index);
    return SUCCESS;
}

/// The one device for which `is` holds; `missing` if there is none.
template <typename Is>
Return by(Device* out, Return missing, Is&& is) {
    if (!nvml_state().started()) return ERROR_UNINITIALIZED;
    if (out == nullptr) return ERROR_INVALID_ARGUMENT;
    const auto& devices = nvml_state().devices();
    for (std::size_t i = 0; i < devices.size(); i++) {
        if (!is(devices[i].spec)) continue;
        *out = nvml_state().handle(i);
        return SUCCESS;
    }
    return missing;
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
Return nvmlDeviceGetCount(unsigned* count) { return count_devices(count); }
CUSLICE_NVML(nvmlDeviceGetCount_v2);
Return nvmlDeviceGetCount_v2(unsigned* count) { return count_devices(count); }
CUSLICE_NVML(nvmlDeviceGetHandleByIndex);
Return nvmlDeviceGetHandleByIndex(unsigned index, Device* out) { return by_index(index, out); }
CUSLICE_NVML(nvmlDeviceGetHandleByIndex_v2);
Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* out) { return by_index(index, out); }
CUSLICE_NVML(nvmlDeviceGetHandleByUUID);
Return nvmlDeviceGetHandleByUUID(const char* uuid, Device* out) { return by_uuid(uuid, out); }
CUSLICE_NVML(nvmlDeviceGetHandleByPciBusId);
Return nvmlDeviceGetHandleByPciBusId(const char* id, Device* out) { return by_pci(id, out); }
CUSLICE_NVML(nvmlDeviceGetHandleByPciBusId_v2);
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
