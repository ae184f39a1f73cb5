// SPDX-License-Identifier: Apache-2.0
// UUIDs of fake GPUs, which say so themselves: their last 48 bits follow from the others. So whoever reads a ledger, in
// which a GPU is no more than a UUID, can tell that there is no such GPU. A real one looks so once in 2^48.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace cuslice {

/// The last six bytes of a fake GPU's UUID, as a number, of the first ten. Pure; safe from any thread.
constexpr uint64_t fake_uuid_seal(std::span<const unsigned char, 10> first) {
    uint64_t hash = 0x66616b6520475055;  // "fake GPU"
    for (const unsigned char byte : first) {
        hash = (hash ^ byte) * 0x100000001b3;
        hash ^= hash >> 29;
    }
    return (hash ^ hash >> 17) & 0xffffffffffff;
}

/// The value of a hexadecimal digit, in any case; 16 of anything else.
constexpr unsigned uuid_digit(char digit) {
    constexpr std::string_view kSmall = "0123456789abcdef";
    constexpr std::string_view kCapital = "0123456789ABCDEF";
    const size_t small = kSmall.find(digit);
    const size_t either = small == kSmall.npos ? kCapital.find(digit) : small;
    return either == kSmall.npos ? 16 : static_cast<unsigned>(either);
}

/// True of "GPU-…" and "MIG-…" of a fake GPU, or of a partition of one. Pure; safe from any thread.
constexpr bool is_fake_uuid(std::string_view uuid) {
    constexpr size_t kPrefix = 4, kDigits = 32, kDashes = 4;
    if (uuid.size() != kPrefix + kDigits + kDashes)
        return false;
    unsigned char first[10] = {};
    uint64_t seal = 0;
    size_t digits = 0;
    for (const char character : uuid.substr(kPrefix)) {
        if (character == '-')
            continue;
        const unsigned value = uuid_digit(character);
        if (value >= 16)
            return false;
        if (digits < 20)
            first[digits / 2] = static_cast<unsigned char>(first[digits / 2] << 4 | value);
        else
            seal = seal << 4 | value;
        ++digits;
    }
    return digits == kDigits && seal == fake_uuid_seal(first);
}

}  // namespace cuslice
