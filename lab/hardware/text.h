// SPDX-License-Identifier: Apache-2.0
#pragma once
// How figures are written into the record.
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

namespace cuslice::check {

/// Bytes as MiB with two decimals, which shows the 64 KiB steps of small allocations.
inline std::string mib(uint64_t bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f MiB", static_cast<double>(bytes) / (1 << 20));
    return text;
}

inline std::string mib(std::optional<uint64_t> bytes) { return bytes ? mib(*bytes) : "–"; }

/// a − b, with its sign.
inline std::string mib_between(std::optional<uint64_t> a, std::optional<uint64_t> b) {
    if (!a || !b)
        return "–";
    return *a >= *b ? "+" + mib(*a - *b) : "−" + mib(*b - *a);
}

/// A round size as people write it: 4 KiB, 1 GiB.
inline std::string size(uint64_t bytes) {
    const char* units[] = {" B", " KiB", " MiB", " GiB"};
    int unit = 0;
    for (; unit < 3 && bytes >= 1024 && bytes % 1024 == 0; unit++)
        bytes /= 1024;
    return std::to_string(bytes) + units[unit];
}

/// Nanoseconds in the unit that suits them.
inline std::string duration(double nanoseconds) {
    char text[32];
    if (nanoseconds < 1000)
        std::snprintf(text, sizeof text, "%.0f ns", nanoseconds);
    else if (nanoseconds < 1e6)
        std::snprintf(text, sizeof text, "%.2f µs", nanoseconds / 1e3);
    else
        std::snprintf(text, sizeof text, "%.2f ms", nanoseconds / 1e6);
    return text;
}

}  // namespace cuslice::check
