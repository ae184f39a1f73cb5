// SPDX-License-Identifier: Apache-2.0
// UUIDs and PCI addresses as text.

#include <cstdio>
#include <cstring>
#include <span>

#include "config/uuid/fake.h"
#include "fake/spec/gpu_spec.h"

namespace cuslice::fake {
namespace {

uint64_t hash(const std::string& text, uint64_t seed) {
    uint64_t h = 0xcbf29ce484222325ULL ^ seed;  // FNV-1a, then mixed: neighbours must not look alike
    for (const unsigned char c : text)
        h = (h ^ c) * 0x100000001b3ULL;
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdULL;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53ULL;
    return h ^ h >> 33;
}

}  // namespace

Uuid made_up_uuid(const std::string& text) {
    Uuid uuid;
    for (size_t half = 0; half < 2; half++) {
        const uint64_t bits = hash(text, half + 1);
        for (size_t i = 0; i < 8; i++)
            uuid[half * 8 + i] = static_cast<unsigned char>(bits >> (8 * i));
    }
    uuid[6] = static_cast<unsigned char>((uuid[6] & 0x0f) | 0x40);
    uuid[8] = static_cast<unsigned char>((uuid[8] & 0x3f) | 0x80);
    const uint64_t seal = fake_uuid_seal(std::span(uuid).first<10>());
    for (size_t i = 0; i < 6; i++)
        uuid[10 + i] = static_cast<unsigned char>(seal >> (40 - 8 * i));
    return uuid;
}

std::string uuid_text(const Uuid& uuid) {
    char text[48];
    char* out = text + std::snprintf(text, sizeof text, "GPU-");
    for (size_t i = 0; i < uuid.size(); i++) {
        const bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        out += std::snprintf(out, static_cast<size_t>(text + sizeof text - out), dash ? "-%02x" : "%02x", uuid[i]);
    }
    return text;
}

std::string uuid_text(const GpuSpec& gpu) {
    return (gpu.is_instance ? "MIG-" : "GPU-") + uuid_text(gpu.uuid).substr(4);
}

std::string pci_text(const PciAddress& pci) {
    char text[32];
    std::snprintf(text, sizeof text, "%04X:%02X:%02X.0", pci.domain, pci.bus, pci.device);
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
    if (std::strncmp(at, "GPU-", 4) == 0)
        at += 4;
    for (size_t i = 0; i < uuid.size(); i++) {
        if ((i == 4 || i == 6 || i == 8 || i == 10) && *at++ != '-')
            return false;
        unsigned byte = 0;
        int end = 0;
        if (std::sscanf(at, "%2x%n", &byte, &end) != 1 || end != 2)
            return false;
        uuid[i] = static_cast<unsigned char>(byte);
        at += 2;
    }
    return *at == '\0';
}

}  // namespace cuslice::fake
