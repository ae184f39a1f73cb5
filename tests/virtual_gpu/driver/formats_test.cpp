// SPDX-License-Identifier: Apache-2.0
// NVIDIA's formats, which library and fake GPU read alike.

#include <cstdint>
#include <cstring>
#include <limits>

#include "tests/catch.h"
#include "virtual_gpu/driver/array_format.h"
#include "virtual_gpu/driver/cubin.h"
#include "virtual_gpu/driver/fat_binary.h"
#include "virtual_gpu/driver/ptx_type.h"

using namespace cuslice;

TEST_CASE("formats: a channel takes what its array's format says") {
    CHECK(channel_bytes(CU_AD_FORMAT_UNSIGNED_INT8) == 1);
    CHECK(channel_bytes(CU_AD_FORMAT_SIGNED_INT8) == 1);
    CHECK(channel_bytes(CU_AD_FORMAT_UNSIGNED_INT16) == 2);
    CHECK(channel_bytes(CU_AD_FORMAT_SIGNED_INT16) == 2);
    CHECK(channel_bytes(CU_AD_FORMAT_HALF) == 2);
    CHECK(channel_bytes(CU_AD_FORMAT_UNSIGNED_INT32) == 4);
    CHECK(channel_bytes(CU_AD_FORMAT_SIGNED_INT32) == 4);
    CHECK(channel_bytes(CU_AD_FORMAT_FLOAT) == 4);
    // Elements of these share bytes.
    CHECK(channel_bytes(CU_AD_FORMAT_NV12) == 0);
    CHECK(channel_bytes(CU_AD_FORMAT_BC1_UNORM) == 0);
}

TEST_CASE("formats: an entry of a fat binary fits where its header and its code end") {
    constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
    FatBinaryEntry entry{};
    entry.header_size = 64;
    entry.size = 36;
    CHECK(entry.bytes() == 100);
    CHECK(entry.fits(100));
    CHECK(!entry.fits(99));
    CHECK(!entry.fits(63));
    entry.size = kMost;  // both together overflow
    CHECK(!entry.fits(100));
    CHECK(!entry.fits(kMost));
    entry.size = 0;
    CHECK(entry.fits(64));
    entry.header_size = 63;
    CHECK(!entry.fits(100));
}

TEST_CASE("formats: LZ4 and Zstandard are the compressed entries") {
    FatBinaryEntry entry{};
    entry.flags = ~FatBinaryEntry::kCompressed;
    CHECK(!entry.is_compressed());
    for (const uint64_t flag : {0x2000, 0x8000}) {
        entry.flags = flag;
        CHECK(entry.is_compressed());
    }
}

TEST_CASE("formats: a cubin is a 64-bit ELF file for NVIDIA's machine") {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_machine = 190;
    CHECK(is_cubin(header));
    Elf64_Ehdr other = header;
    other.e_machine = EM_X86_64;
    CHECK(!is_cubin(other));
    other = header;
    other.e_ident[EI_CLASS] = ELFCLASS32;
    CHECK(!is_cubin(other));
    other = header;
    other.e_ident[0] = 0;
    CHECK(!is_cubin(other));
}

TEST_CASE("formats: a type of PTX has the bytes of its name") {
    CHECK(ptx_type_bytes(".b8") == 1);
    CHECK(ptx_type_bytes(".u16") == 2);
    CHECK(ptx_type_bytes(".s32") == 4);
    CHECK(ptx_type_bytes(".f64") == 8);
    CHECK(ptx_type_bytes(".b128") == 16);
    for (const char* word : {"", ".", ".b", "b8", ".v2", ".x8", ".b24", ".b08", ".f16x2", ".b8 "}) {
        CAPTURE(word);
        CHECK(ptx_type_bytes(word) == 0);
    }
}
