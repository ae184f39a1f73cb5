// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace cuslice {

/// FNV-1a, the same in every process and every version. Pure.
constexpr uint64_t hash_of(std::string_view text) {
    constexpr uint64_t kBasis = 0xcbf29ce484222325;
    constexpr uint64_t kPrime = 0x100000001b3;
    uint64_t hash = kBasis;
    for (const char c : text)
        hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
    return hash;
}

}  // namespace cuslice
