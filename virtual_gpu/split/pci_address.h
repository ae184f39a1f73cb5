// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "config/number.h"

namespace cuslice {

struct PciAddress {
    unsigned domain = 0, bus = 0, device = 0, function = 0;
    bool operator==(const PciAddress&) const = default;
};

namespace detail {

// A hexadecimal number of at most 32 bits, which `*text` then points behind.
inline bool read_hexadecimal(const char** text, unsigned* number) {
    if (digit_value(**text) >= 16)
        return false;
    const uint64_t value = read_number(*text, text, 16);
    *number = static_cast<unsigned>(value);
    return value <= 0xffffffff;
}

}  // namespace detail

// "0000:81:00.0", with or without domain and function, as the driver and NVML take it.
inline bool read_pci(const char* text, PciAddress* address) {
    constexpr unsigned kMost = 3;  // domain, bus and device
    unsigned numbers[kMost] = {}, count = 0;
    PciAddress read;
    while (count < kMost && detail::read_hexadecimal(&text, &numbers[count])) {
        count++;
        if (*text != ':')
            break;
        text++;
    }
    if (count < 2 || text[-1] == ':')
        return false;
    if (*text == '.' && !detail::read_hexadecimal(&++text, &read.function))
        return false;
    if (*text)
        return false;
    read.device = numbers[count - 1];
    read.bus = numbers[count - 2];
    if (count == kMost)
        read.domain = numbers[0];
    *address = read;
    return true;
}

}  // namespace cuslice
