// SPDX-License-Identifier: Apache-2.0
#pragma once
// A fat binary, made here byte by byte as the tools write them.

#include <string>

namespace fake_test {

template <typename T>
inline void put(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// An entry of a fat binary.
inline std::string entry(unsigned short kind, unsigned capability, unsigned long long flags, const std::string& code) {
    std::string out;
    put<unsigned short>(out, kind);
    put<unsigned short>(out, 0x101);
    put<unsigned>(out, 64);
    put<unsigned long long>(out, code.size());
    put<unsigned long long>(out, 0);
    put<unsigned short>(out, 0);
    put<unsigned short>(out, 9);
    put<unsigned>(out, capability);
    put<unsigned long long>(out, 0);
    put<unsigned long long>(out, flags);
    put<unsigned long long>(out, 0);
    put<unsigned long long>(out, 0);
    return out + code;
}

inline std::string container(const std::string& entries) {
    std::string out;
    put<unsigned>(out, 0xba55ed50);
    put<unsigned short>(out, 1);
    put<unsigned short>(out, 16);
    put<unsigned long long>(out, entries.size());
    return out + entries;
}

}  // namespace fake_test
