// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fundamental types of PTX ("Fundamental Types" in NVIDIA's PTX ISA).

#include <cstdint>
#include <string_view>

namespace cuslice {

/// Bytes of the bit-size, integer and floating-point types: ".b8" → 1, ".f64" → 8; 0 for any other word.
constexpr uint64_t ptx_type_bytes(std::string_view word) {
    constexpr struct {
        std::string_view bits;
        uint64_t bytes;
    } kWidths[] = {{"8", 1}, {"16", 2}, {"32", 4}, {"64", 8}, {"128", 16}};
    constexpr std::string_view kKinds = "busf";
    if (word.size() < 3 || word[0] != '.' || kKinds.find(word[1]) == kKinds.npos)
        return 0;
    word.remove_prefix(2);
    for (const auto& width : kWidths)
        if (word == width.bits)
            return width.bytes;
    return 0;
}

}  // namespace cuslice
