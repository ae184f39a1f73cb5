// SPDX-License-Identifier: Apache-2.0
// An ELF file with what the reader looks at, and bytes as a source.
#pragma once

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "elf/file.h"
#include "elf/machine.h"
#include "tests/elf/at_the_edge.h"

namespace cuslice::tests {

class ByteSource : public elf_source {
  public:
    explicit ByteSource(const std::string& text) : elf_source{&copy}, bytes_(text) {}
    int reads() const { return reads_; }

  private:
    static size_t copy(elf_source* source, uint64_t offset, void* into, size_t size) {
        auto& self = *static_cast<ByteSource*>(source);
        self.reads_++;
        if (offset >= self.bytes_.size())
            return 0;
        size = std::min<uint64_t>(size, self.bytes_.size() - offset);
        std::memcpy(into, self.bytes_.begin() + offset, size);
        return size;
    }

    AtTheEdge bytes_;
    int reads_ = 0;
};

// A library that is loaded to kAddress: its header, three segments (two loaded ones and the dynamic one between), one
// section, the texts, and the dynamic section.
struct MadeUpFile {
    static constexpr uint64_t kAddress = 0x400000, kTextsAt = 512, kDynamicAt = 1024, kSize = 2048;

    Elf64_Ehdr header{};
    std::vector<Elf64_Phdr> segments;
    std::vector<Elf64_Shdr> sections;
    std::vector<Elf64_Dyn> dynamic;
    std::string texts = std::string(1, '\0');

    MadeUpFile() {
        std::memcpy(header.e_ident, ELFMAG, SELFMAG);
        header.e_ident[EI_CLASS] = ELFCLASS64;
        header.e_ident[EI_DATA] = ELFDATA2LSB;
        header.e_type = ET_DYN;
        header.e_machine = elf_own_machine;
        header.e_phentsize = sizeof(Elf64_Phdr);
        header.e_shentsize = sizeof(Elf64_Shdr);
        segments = {segment(PT_LOAD, 0, kAddress, kDynamicAt), segment(PT_DYNAMIC, kDynamicAt, kAddress + 0x10000, 512),
                    segment(PT_LOAD, kDynamicAt, kAddress + 0x10000, kSize - kDynamicAt)};
        sections.resize(1);
        add(DT_STRTAB, kAddress + kTextsAt);
    }

    static Elf64_Phdr segment(uint32_t type, uint64_t offset, uint64_t address, uint64_t size) {
        Elf64_Phdr made{};
        made.p_type = type;
        made.p_offset = offset;
        made.p_vaddr = address;
        made.p_filesz = made.p_memsz = size;
        return made;
    }
    void add(Elf64_Sxword tag, uint64_t value) {
        Elf64_Dyn entry{};
        entry.d_tag = tag;
        entry.d_un.d_val = value;
        dynamic.push_back(entry);
    }
    void name(Elf64_Sxword tag, const std::string& text) {
        add(tag, texts.size());
        texts += text + '\0';
    }

    std::string bytes() const {
        std::string out(kSize, '\0');
        Elf64_Ehdr written = header;
        written.e_phoff = sizeof header;
        written.e_phnum = static_cast<Elf64_Half>(segments.size());
        written.e_shoff = written.e_phoff + segments.size() * sizeof(Elf64_Phdr);
        written.e_shnum = static_cast<Elf64_Half>(sections.size());
        std::vector<Elf64_Dyn> entries = dynamic;
        entries.push_back({});  // DT_NULL
        put_at(out, 0, &written, sizeof written);
        put_at(out, written.e_phoff, segments.data(), segments.size() * sizeof(Elf64_Phdr));
        put_at(out, written.e_shoff, sections.data(), sections.size() * sizeof(Elf64_Shdr));
        put_at(out, kTextsAt, texts.data(), texts.size());
        put_at(out, kDynamicAt, entries.data(), entries.size() * sizeof(Elf64_Dyn));
        return out;
    }

  private:
    static void put_at(std::string& out, size_t at, const void* from, size_t size) {
        out.replace(at, size, static_cast<const char*>(from), size);
    }
};

}  // namespace cuslice::tests
