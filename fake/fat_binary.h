#pragma once
// A fat binary as nvcc writes it: a wrapper in the program, which points to a container of entries, each with code for
// one kind of GPU. NVIDIA documents none of it; these are the fields that nvcc 9.0 to 13.0 fill.

#include <cstdint>

namespace cuslice::fake {

struct FatBinaryWrapper {
    static constexpr std::uint32_t kMagic = 0x466243b1;
    static constexpr std::uint32_t kLinked = 2;  // version: relocatable code, whose parts are listed elsewhere too
    std::uint32_t magic, version;
    const unsigned char* container;
    const void* name;
};

struct FatBinaryContainer {
    static constexpr std::uint32_t kMagic = 0xba55ed50;
    std::uint32_t magic;
    std::uint16_t version, header_size;
    std::uint64_t size;  // of the entries
};

struct FatBinaryEntry {
    static constexpr std::uint16_t kPtx = 1, kCubin = 2;
    static constexpr std::uint64_t kCompressed = 0x2000 | 0x8000;  // flags: LZ4, Zstandard
    std::uint16_t kind, attributes;
    std::uint32_t header_size;
    std::uint64_t size;
    std::uint32_t compressed_size, reserved;
    std::uint16_t minor, major;
    std::uint32_t capability;
    std::uint32_t name_offset, name_size;
    std::uint64_t flags, reserved2, uncompressed_size;
};

/// The GPUs that an entry is for. A capability is major * 10 + minor; 0 is not known.
struct Target {
    bool ptx = false;
    int capability = 0;
};

/// True if code for one capability runs on a device of another: PTX upwards, cubins within a major version.
constexpr bool runs_on(bool ptx, int code, int device) {
    return ptx ? code <= device : code / 10 == device / 10 && code % 10 <= device % 10;
}

/// True if a device that runs both takes the first: a cubin before PTX, and the newest.
constexpr bool is_taken_before(const Target& first, const Target& second) {
    return first.ptx != second.ptx ? second.ptx : first.capability > second.capability;
}

}  // namespace cuslice::fake
