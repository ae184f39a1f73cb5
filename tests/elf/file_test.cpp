// SPDX-License-Identifier: Apache-2.0
#include "elf/file.h"

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "elf/window.h"
#include "tests/catch.h"
#include "tests/elf/made_up_file.h"

namespace cuslice::tests {
namespace {

using Words = std::vector<std::string>;

bool opens(const MadeUpFile& made) {
    ByteSource source(made.bytes());
    elf_file file;
    return elf_open(&file, &source);
}

// The texts of the dynamic section's entries with this tag; "?" for one without an end.
Words names(const std::string& bytes, Elf64_Sxword tag) {
    ByteSource source(bytes);
    elf_file file;
    Words found;
    if (!elf_open(&file, &source))
        return found;
    const elf_dynamic dynamic = elf_find_dynamic(&file);
    Elf64_Dyn entry;
    for (size_t i = 0; elf_dynamic_entry(&file, &dynamic, i, &entry); ++i) {
        char text[256];
        size_t length = 0;
        if (entry.d_tag != tag)
            continue;
        const bool ends = elf_read_text(&source, elf_text_of(&dynamic, &entry), text, sizeof text, &length);
        found.push_back(ends ? std::string(text, length) : "?");
    }
    return found;
}

}  // namespace

TEST_CASE("a file of 64 bits, little-endian, is opened, and no other") {
    CHECK(opens({}));
    const auto with = [](size_t at, unsigned char byte) {
        MadeUpFile made;
        made.header.e_ident[at] = byte;
        return opens(made);
    };
    CHECK(with(EI_OSABI, ELFOSABI_LINUX));
    for (const size_t at : {EI_MAG0, EI_MAG1, EI_MAG2, EI_MAG3})
        CHECK_FALSE(with(at, 'e'));
    CHECK_FALSE(with(EI_CLASS, ELFCLASS32));
    CHECK_FALSE(with(EI_DATA, ELFDATA2MSB));
    const std::string whole = MadeUpFile().bytes();
    for (size_t size = 0; size < sizeof(Elf64_Ehdr); ++size) {
        ByteSource cut(whole.substr(0, size));
        elf_file file;
        CHECK_FALSE(elf_open(&file, &cut));
    }
}

TEST_CASE("native is what this build's processor runs") {
    MadeUpFile made;
    CHECK(elf_is_native(&made.header));
    made.header.e_machine = EM_S390;
    CHECK_FALSE(elf_is_native(&made.header));
    CHECK(opens(made));
}

TEST_CASE("an address leads to the byte of the file that is loaded there") {
    ByteSource source(MadeUpFile().bytes());
    elf_file file;
    REQUIRE(elf_open(&file, &source));
    constexpr uint64_t kFirst = MadeUpFile::kAddress, kSecond = kFirst + 0x10000;
    CHECK(elf_offset_of(&file, kFirst) == 0);
    CHECK(elf_offset_of(&file, kFirst + MadeUpFile::kDynamicAt - 1) == MadeUpFile::kDynamicAt - 1);
    CHECK(elf_offset_of(&file, kFirst + MadeUpFile::kDynamicAt) == ELF_NOWHERE);
    CHECK(elf_offset_of(&file, kFirst - 1) == ELF_NOWHERE);
    CHECK(elf_offset_of(&file, kSecond + 8) == MadeUpFile::kDynamicAt + 8);
    CHECK(elf_offset_of(&file, 0) == ELF_NOWHERE);
    CHECK(elf_offset_of(&file, ELF_NOWHERE) == ELF_NOWHERE);
}

TEST_CASE("the dynamic section's names are given in its order") {
    MadeUpFile made;
    made.name(DT_NEEDED, "liba.so");
    made.name(DT_SONAME, "libown.so.1");
    made.name(DT_NEEDED, "libb.so");
    CHECK(names(made.bytes(), DT_NEEDED) == Words{"liba.so", "libb.so"});
    CHECK(names(made.bytes(), DT_SONAME) == Words{"libown.so.1"});
    CHECK(names(made.bytes(), DT_RPATH).empty());
}

TEST_CASE("of two dynamic segments the last one counts, as for the loader") {
    MadeUpFile made;
    made.name(DT_NEEDED, "liba.so");
    made.segments.insert(made.segments.begin(), MadeUpFile::segment(PT_DYNAMIC, 0, MadeUpFile::kAddress, 64));
    CHECK(names(made.bytes(), DT_NEEDED) == Words{"liba.so"});
    made.segments.push_back(MadeUpFile::segment(PT_DYNAMIC, 0, 0, 64));  // which no loaded segment holds
    CHECK(names(made.bytes(), DT_NEEDED).empty());
}

TEST_CASE("texts that lie nowhere or have no end are none") {
    MadeUpFile made;
    made.add(DT_NEEDED, MadeUpFile::kSize);
    made.add(DT_NEEDED, ELF_NOWHERE);
    made.add(DT_NEEDED, ELF_NOWHERE - MadeUpFile::kTextsAt + 1);  // wraps around
    CHECK(names(made.bytes(), DT_NEEDED) == Words{"?", "?", "?"});
    made.dynamic[0].d_un.d_ptr = 0;
    CHECK(names(made.bytes(), DT_NEEDED) == Words{"?", "?", "?"});
    MadeUpFile long_one;
    long_one.name(DT_NEEDED, std::string(300, 'x'));
    CHECK(names(long_one.bytes(), DT_NEEDED) == Words{"?"});
}

TEST_CASE("tables that lie outside the file, or have entries of another size, have no entries") {
    std::string bytes = MadeUpFile().bytes();
    Elf64_Ehdr header;
    std::memcpy(&header, bytes.data(), sizeof header);
    const auto segments_with = [&](auto change) {
        Elf64_Ehdr changed = header;
        change(changed);
        std::string other = bytes;
        std::memcpy(other.data(), &changed, sizeof changed);
        ByteSource source(other);
        elf_file file;
        REQUIRE(elf_open(&file, &source));
        Elf64_Phdr segment;
        Elf64_Shdr section;
        int count = 0;
        for (size_t i = 0; elf_segment(&file, i, &segment); ++i)
            count++;
        for (size_t i = 0; elf_section(&file, i, &section); ++i)
            count += 100;
        return count;
    };
    CHECK(segments_with([](Elf64_Ehdr&) {}) == 103);
    CHECK(segments_with([](Elf64_Ehdr& h) { h.e_phentsize = 32; }) == 100);
    CHECK(segments_with([](Elf64_Ehdr& h) { h.e_shentsize = 32; }) == 3);
    CHECK(segments_with([](Elf64_Ehdr& h) { h.e_phoff = MadeUpFile::kSize; }) == 100);
    CHECK(segments_with([](Elf64_Ehdr& h) { h.e_phoff = ELF_NOWHERE - 8; }) == 100);
    CHECK(segments_with([](Elf64_Ehdr& h) { h.e_shoff = ELF_NOWHERE; }) == 3);
    CHECK(segments_with([](Elf64_Ehdr& h) { h.e_shnum = 0; }) == 3);
    // As many as are in the file, and at most as many as are looked at.
    CHECK(segments_with([](Elf64_Ehdr& h) { h.e_phnum = 0xffff; }) == 100 + (MadeUpFile::kSize - 64) / 56);
}

TEST_CASE("a dynamic section without an end is looked at for so long, and not for ever") {
    std::string bytes = MadeUpFile().bytes();
    bytes.resize(MadeUpFile::kDynamicAt + 4096 * sizeof(Elf64_Dyn), '\1');
    std::fill(bytes.begin() + MadeUpFile::kDynamicAt, bytes.end(), '\1');
    ByteSource source(bytes);
    elf_file file;
    REQUIRE(elf_open(&file, &source));
    const elf_dynamic dynamic = elf_find_dynamic(&file);
    Elf64_Dyn entry;
    size_t count = 0;
    while (elf_dynamic_entry(&file, &dynamic, count, &entry))
        count++;
    CHECK(count == elf_most_dynamic_entries);
}

TEST_CASE("whatever bytes there are, a file is read within its bounds", "[fuzz]") {
    MadeUpFile made;
    made.name(DT_NEEDED, "liba.so");
    made.name(DT_RUNPATH, "$ORIGIN");
    const std::string whole = made.bytes();
    std::mt19937 random(20261128);
    for (int round = 0; round < 3000; ++round) {
        std::string bytes = whole;
        for (unsigned changes = 1 + random() % 6; changes; --changes)
            bytes[random() % (random() % 2 ? 512 : bytes.size())] = static_cast<char>(random());
        if (random() % 4 == 0)
            bytes.resize(random() % (bytes.size() + 1));
        CHECK(names(bytes, DT_NEEDED).size() <= elf_most_dynamic_entries);
    }
}

}  // namespace cuslice::tests
