// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace cuslice {

// The beginning of NVIDIA's names for what its static runtime keeps to itself.
inline constexpr char kPrivateNames[] = "libcudart_static_";

// Addresses of this process: [begin, end).
struct AddressRange {
    uintptr_t begin = 0, end = 0;
    bool holds(uintptr_t address, size_t size) const {
        return address >= begin && address < end && size <= end - address;
    }
};

// A program's or a library's symbols, and the place that it has in memory.
struct SymbolTable {
    std::span<const Elf64_Sym> all;
    std::span<const char> texts;  // ends with a zero
    uintptr_t base = 0;           // what the loader has added to the file's addresses
    AddressRange whole, code;     // all of it, and its segment with code

    // Empty for one whose text lies outside the table.
    const char* name_of(const Elf64_Sym& symbol) const {
        return symbol.st_name < texts.size() ? texts.data() + symbol.st_name : "";
    }
    uintptr_t address_of(const Elf64_Sym& symbol) const { return base + symbol.st_value; }
};

}  // namespace cuslice
