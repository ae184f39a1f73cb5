// UUIDs and PCI addresses as text.

#include <cstdio>
#include <cstring>

#include "virtual_gpu/fake/spec/gpu_spec.h"

namespace cuslice::fake {

std::string uuid_text(const Uuid& uuid) {
    char text[48];
    char* out = text + std::snprintf(text, sizeof text, "GPU-");
    for (std::size_t i = 0; i < uuid.size(); i++) {
        const bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        out += std::snprintf(out, static_cast<std::size_t>(text + sizeof text - out), dash ? "-%02x" : "%02x", uuid[i]);
    }
    return text;
}

std::string pci_text(const PciAddress& pci) {
    char text[32];
    std::snprintf(text, sizeof text, "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
    return text;
}

bool parse_pci(const std::string& text, PciAddress& pci) {
    unsigned domain = 0, bus = 0, device = 0, function = 0;
    int end = 0;
    const int size = static_cast<int>(text.size());
    // The function is optional and always 0; the domain is optional too.
    for (const char* form : {"%8x:%2x:%2x.%1x%n", "%8x:%2x:%2x%n"}) {
        const bool with_function = std::strchr(form, '.') != nullptr;
        const int read = with_function ? std::sscanf(text.c_str(), form, &domain, &bus, &device, &function, &end)
                                       : std::sscanf(text.c_str(), form, &domain, &bus, &device, &end);
        if (read == (with_function ? 4 : 3) && end == size && function == 0) {
            pci = {domain, bus, device};
            return true;
        }
    }
    if ((std::sscanf(text.c_str(), "%2x:%2x.%1x%n", &bus, &device, &function, &end) == 3 && end == size &&
         function == 0) ||
        (std::sscanf(text.c_str(), "%2x:%2x%n", &bus, &device, &end) == 2 && end == size)) {
        pci = {0, bus, device};
        return true;
    }
    return false;
}

bool parse_uuid(const std::string& text, Uuid& uuid) {
    const char* at = text.c_str();
    if (std::strncmp(at, "GPU-", 4) == 0) at += 4;
    for (std::size_t i = 0; i < uuid.size(); i++) {
        if ((i == 4 || i == 6 || i == 8 || i == 10) && *at++ != '-') return false;
        unsigned byte = 0;
        int end = 0;
        if (std::sscanf(at, "%2x%n", &byte, &end) != 1 || end != 2) return false;
        uuid[i] = static_cast<unsigned char>(byte);
        at += 2;
    }
    return *at == '\0';
}

}  // namespace cuslice::fake
