// SPDX-License-Identifier: Apache-2.0
// The loader's cache as ldconfig would write it for these libraries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cuslice::tests {

#if defined(__x86_64__)
constexpr int32_t kThisMachine = 0x0303, kOtherMachine = 0x0a03;
#elif defined(__aarch64__)
constexpr int32_t kThisMachine = 0x0a03, kOtherMachine = 0x0303;
#endif

struct CacheRow {
    int32_t flags;
    std::string name, path;
};

inline void put(std::string& out, uint64_t value, size_t size) {
    for (size_t i = 0; i < size; ++i)
        out += static_cast<char>(value >> 8 * i);
}

// glibc-ld.so.cache1.1, with offsets from the header's beginning.
inline std::string made_up_cache(const std::vector<CacheRow>& rows) {
    std::string strings, entries;
    const auto text = [&](const std::string& s) {
        const size_t at = 48 + rows.size() * 24 + strings.size();
        strings += s + '\0';
        return at;
    };
    for (const CacheRow& row : rows) {
        put(entries, static_cast<uint32_t>(row.flags), 4);
        put(entries, text(row.name), 4);
        put(entries, text(row.path), 4);
        put(entries, 0, 4);
        put(entries, 0, 8);
    }
    std::string out = "glibc-ld.so.cache1.1";
    put(out, rows.size(), 4);
    put(out, strings.size(), 4);
    out.resize(48, '\0');
    return out + entries + strings;
}

}  // namespace cuslice::tests
