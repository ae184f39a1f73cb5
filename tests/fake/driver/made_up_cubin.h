// SPDX-License-Identifier: Apache-2.0
#pragma once
// A cubin, made here byte by byte as the tools write them.

#include <elf.h>

#include <cstring>
#include <string>
#include <vector>

namespace fake_test {

/// A cubin for one capability with one kernel of two parameters and one variable with a value. From 9.0 on the count of
/// registers is an attribute alone, and shared memory begins with 1024 bytes that aren't the kernel's.
class Cubin {
  public:
    /// `of_ptx`: the capability of the PTX that it says it was compiled from; 0 where it doesn't say.
    explicit Cubin(unsigned capability, unsigned char abi, unsigned of_ptx = 0) {
        const bool attributes = capability >= 90;
        header_.e_ident[EI_CLASS] = ELFCLASS64;
        header_.e_ident[EI_DATA] = ELFDATA2LSB;
        std::memcpy(header_.e_ident, ELFMAG, SELFMAG);
        header_.e_ident[EI_ABIVERSION] = abi;
        header_.e_machine = 190;
        header_.e_flags = abi >= 8 ? 0x6000004 | capability << 8 : 0x500500 | capability;
        header_.e_shentsize = sizeof(Elf64_Shdr);
        add("", SHT_NULL, "");
        const unsigned code = add(".text.kernel", SHT_PROGBITS, std::string(128, '\0'), attributes ? 0 : 18U << 24);
        const unsigned data = add(".nv.global.init", SHT_PROGBITS, std::string("\x2a\0\0\0", 4));
        sections_.back().sh_flags = SHF_ALLOC | SHF_WRITE;
        // Two parameters (ordinal 1 first), then the launch bound of 256 threads.
        const unsigned char info[] = {4,  0x17, 12, 0, 0, 0, 0, 0, 1, 0, 8, 0,    0,    0xf0, 0x11, 0,    4,    0x17,
                                      12, 0,    0,  0, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0x21, 0,    3,    0x1b, 0xff, 0,
                                      4,  5,    12, 0, 0, 1, 0, 0, 1, 0, 0, 0,    1,    0,    0,    0};
        add(".nv.info.kernel", SHT_LOPROC, std::string(reinterpret_cast<const char*>(info), sizeof info));
        add(".nv.shared.kernel", SHT_NOBITS, "", 0, attributes ? 1024 + 512 : 512);
        add(".nv.constant3", SHT_PROGBITS, std::string(80, '\0'));
        if (attributes) {
            // Symbol 1, the kernel: 18 registers, a frame of 16 bytes, 64 with the functions that it calls. Symbol 2
            // is no kernel.
            const unsigned char resources[] = {4,  0x2f, 8, 0, 1,  0,    0, 0, 18, 0,    0, 0, 4,  0x11, 8, 0,
                                               1,  0,    0, 0, 16, 0,    0, 0, 4,  0x12, 8, 0, 1,  0,    0, 0,
                                               64, 0,    0, 0, 4,  0x2f, 8, 0, 2,  0,    0, 0, 99, 0,    0, 0};
            add(".nv.info", SHT_LOPROC, std::string(reinterpret_cast<const char*>(resources), sizeof resources));
        }
        if (of_ptx != 0)
            add(".note.nv.cuinfo", SHT_NOTE, note(of_ptx));
        const unsigned strings = add(".strtab", SHT_STRTAB, std::string("\0kernel\0answer\0", 15));
        std::string symbols(sizeof(Elf64_Sym), '\0');
        symbols += symbol(1, STT_FUNC, 0x10, code, 0, 128) + symbol(8, STT_OBJECT, 0, data, 0, 4);
        add(".symtab", SHT_SYMTAB, symbols, 0, 0, strings);
    }
    std::string bytes() {
        header_.e_shstrndx = static_cast<Elf64_Half>(add(".shstrtab", SHT_STRTAB, "", 0, names_.size() + 10));
        sections_.back().sh_offset = sizeof header_ + contents_.size();
        contents_ += names_;
        header_.e_shnum = static_cast<Elf64_Half>(sections_.size());
        header_.e_shoff = sizeof header_ + contents_.size();
        std::string out(reinterpret_cast<const char*>(&header_), sizeof header_);
        out += contents_;
        out.append(reinterpret_cast<const char*>(sections_.data()), sections_.size() * sizeof(Elf64_Shdr));
        return out;
    }

  private:
    static std::string note(unsigned of_ptx) {
        const unsigned char bytes[] = {12,  0,    0,   0,   8,   0,   0,   0,   0xe8,
                                       3,   0,    0,   'N', 'V', 'I', 'D', 'I', 'A',
                                       ' ', 'C',  'o', 'r', 'p', 0,   2,   0,   static_cast<unsigned char>(of_ptx),
                                       0,   0x82, 0,   0,   0};
        return {reinterpret_cast<const char*>(bytes), sizeof bytes};
    }
    static std::string symbol(unsigned name, unsigned char type, unsigned char other, unsigned section, unsigned value,
                              unsigned size) {
        Elf64_Sym entry{};
        entry.st_name = name;
        entry.st_info = static_cast<unsigned char>(STB_GLOBAL << 4 | type);
        entry.st_other = other;
        entry.st_shndx = static_cast<Elf64_Section>(section);
        entry.st_value = value;
        entry.st_size = size;
        return {reinterpret_cast<const char*>(&entry), sizeof entry};
    }
    unsigned add(const std::string& name, unsigned type, const std::string& contents, unsigned info = 0,
                 size_t size = 0, unsigned link = 0) {
        Elf64_Shdr section{};
        section.sh_name = static_cast<unsigned>(names_.size());
        names_ += name + '\0';
        section.sh_type = type;
        section.sh_offset = sizeof header_ + contents_.size();
        section.sh_size = size != 0 ? size : contents.size();
        section.sh_info = info;
        section.sh_link = link;
        contents_ += contents;
        sections_.push_back(section);
        return static_cast<unsigned>(sections_.size() - 1);
    }

    Elf64_Ehdr header_{};
    std::vector<Elf64_Shdr> sections_;
    std::string names_, contents_;
};

}  // namespace fake_test
