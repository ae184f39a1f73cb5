// SPDX-License-Identifier: Apache-2.0
#include "config/split/identity.h"

#include <array>
#include <cstring>
#include <span>

#include "config/number.h"
#include "config/uuid/fake.h"

namespace cuslice {
namespace {

// FNV-1a over the lower-case text and the part, with the last bits spread over all (as MurmurHash3 ends): FNV alone
// leaves numbers that differ in the last byte much alike.
uint64_t hash_part(uint64_t start, std::string_view text, unsigned part) {
    constexpr uint64_t kPrime = 0x100000001b3;
    uint64_t hash = start;
    for (const char character : text)
        hash = (hash ^ static_cast<unsigned char>(to_lower(character))) * kPrime;
    hash = (hash ^ 0xff) * kPrime;  // no character of a UUID
    for (unsigned shift = 0; shift < 32; shift += 8)
        hash = (hash ^ (part >> shift & 0xff)) * kPrime;
    hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccd;
    hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53;
    return hash ^ hash >> 33;
}

// FNV's own start, and another: the same bits once more would say nothing new.
constexpr uint64_t kFirstStart = 0xcbf29ce484222325, kSecondStart = 0x9ae16a3b2f90404f;

using UuidBytes = std::array<unsigned char, 16>;
UuidBytes uuid_bytes(uint64_t high, uint64_t low) {
    UuidBytes bytes{};
    for (unsigned i = 0; i < 8; ++i) {
        bytes[i] = static_cast<unsigned char>(high >> (56 - 8 * i));
        bytes[8 + i] = static_cast<unsigned char>(low >> (56 - 8 * i));
    }
    return bytes;
}

void write_part_uuid(std::string_view gpu, unsigned part, char (&uuid)[sizeof(GpuIdentity::uuid)]) {
    uint64_t high = hash_part(kFirstStart, gpu, part), low = hash_part(kSecondStart, gpu, part);
    // RFC 9562: version 8, variant 10.
    high = (high & ~0xf000ull) | 0x8000;
    low = (low & ~(3ull << 62)) | 2ull << 62;
    if (is_fake_uuid(gpu)) {
        const UuidBytes unsealed = uuid_bytes(high, low);
        low = (low & ~0xffffffffffffull) | fake_uuid_seal(std::span(unsealed).first<10>());
    }
    spell_uuid(slice(gpu, 0, 4), uuid_bytes(high, low).data(), uuid);
}

// Firmware numbers domains from 0, and Linux those of its own (VMD, Hyper-V) from 0x10000 or at random: 0xc000 and up
// is free as far as is known. A host has at most 256 domains there and 64 parts of each GPU.
uint32_t domain_of(const GpuIdentity& gpu, uint32_t domain, unsigned part) {
    constexpr uint32_t kFirst = 0xc000, kCount = 0x4000;
    if (domain < kCount / VirtualParts::kMax && part < VirtualParts::kMax)
        return kFirst + domain * static_cast<uint32_t>(VirtualParts::kMax) + part;
    return kFirst + static_cast<uint32_t>(hash_part(kFirstStart, gpu.uuid, part) % kCount);
}

void write_pci(const GpuIdentity& gpu, unsigned part, char (&pci)[sizeof(GpuIdentity::pci)]) {
    const std::string_view own = gpu.pci;
    const size_t colon = own.find(':');
    uint32_t domain = 0;
    if (colon > 8)
        return;  // or there is none
    for (const char digit : slice(own, 0, colon)) {
        const unsigned value = digit_value(digit);
        if (value >= 16)
            return;
        domain = domain * 16 + value;
    }
    const bool upper = own.find_first_of("ABCDEF") != own.npos;
    const std::string_view digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
    domain = domain_of(gpu, domain, part);
    FixedText<sizeof(GpuIdentity::pci)> text;
    for (size_t left = colon < 4 ? 4 : colon; left-- > 0;)
        text.append(digits[left < 8 ? domain >> (4 * left) & 15 : 0]);
    text.append(slice(own, colon));
    std::memcpy(pci, text.c_str(), text.view().size() + 1);
}

}  // namespace

GpuIdentity identity_of_part(const GpuIdentity& gpu, unsigned part) {
    GpuIdentity identity;
    identity.index = gpu.index;
    if (gpu.uuid[0] != '\0')
        write_part_uuid(gpu.uuid, part, identity.uuid);
    write_pci(gpu, part, identity.pci);
    return identity;
}

GpuIdentity identity_of_virtual(const VirtualPart& part, std::span<const GpuIdentity> gpus) {
    return part.split ? identity_of_part(gpus[part.gpu], part.number()) : gpus[part.gpu];
}

}  // namespace cuslice
