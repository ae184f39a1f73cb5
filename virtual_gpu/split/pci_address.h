#pragma once
#include <cstdio>
#include <cstring>

namespace cuslice {

struct PciAddress {
    unsigned domain = 0, bus = 0, device = 0, function = 0;
    bool operator==(const PciAddress&) const = default;
};

// "0000:81:00.0", with or without domain and function, as the driver and NVML take it.
inline bool read_pci(const char* text, PciAddress* address) {
    // Else signs and the x of a hexadecimal number would be read too.
    if (text[std::strspn(text, "0123456789abcdefABCDEF:.")]) return false;
    char rest = 0;
    PciAddress a;
    const bool whole = std::sscanf(text, "%x:%x:%x.%x%c", &a.domain, &a.bus, &a.device, &a.function, &rest) == 4;
    const bool no_function = !whole && std::sscanf(text, "%x:%x:%x%c", &a.domain, &a.bus, &a.device, &rest) == 3;
    const bool short_one = !whole && !no_function;
    if (short_one) {
        a = {};
        if (std::sscanf(text, "%x:%x.%x%c", &a.bus, &a.device, &a.function, &rest) != 3 &&
            std::sscanf(text, "%x:%x%c", &a.bus, &a.device, &rest) != 2)
            return false;
    }
    *address = a;
    return true;
}

}  // namespace cuslice
