// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fat binaries as nvcc writes them: a wrapper in the program, which points to a container of entries, each with code
// for one kind of GPU. NVIDIA documents none of it; these are the fields that nvcc 9.0 to 13.0 fill.

#include <cstdint>

namespace cuslice {

struct FatBinaryWrapper {
    static constexpr uint32_t kMagic = 0x466243b1;
    static constexpr uint32_t kLinked = 2;  // version: relocatable code, whose parts are listed elsewhere too
    uint32_t magic, version;
    const unsigned char* container;
    const void* name;
};

struct FatBinaryContainer {
    static constexpr uint32_t kMagic = 0xba55ed50;
    uint32_t magic;
    uint16_t version, header_size;
    uint64_t size;  // of the entries
};

struct FatBinaryEntry {
    static constexpr uint16_t kPtx = 1, kCubin = 2;
    static constexpr uint64_t kCompressed = 0x2000 | 0x8000;  // flags: LZ4, Zstandard
    uint16_t kind, attributes;
    uint32_t header_size;
    uint64_t size;  // of the code, which follows the header
    uint32_t compressed_size, reserved;
    uint16_t minor, major;
    uint32_t capability;  // major * 10 + minor of the GPU
    uint32_t name_offset, name_size;
    uint64_t flags, reserved2, uncompressed_size;

    /// True if header and code end within `left` bytes from the entry's beginning.
    constexpr bool fits(uint64_t left) const {
        return header_size >= sizeof(FatBinaryEntry) && header_size <= left && size <= left - header_size;
    }
    /// Bytes from this entry to the next, if it fits.
    constexpr uint64_t bytes() const { return header_size + size; }
    constexpr bool is_compressed() const { return (flags & kCompressed) != 0; }
};
static_assert(sizeof(FatBinaryWrapper) == 24 && sizeof(FatBinaryContainer) == 16 && sizeof(FatBinaryEntry) == 64);

}  // namespace cuslice
