// SPDX-License-Identifier: Apache-2.0
#include "shim/redirect/program_symbols.h"

#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "elf/file.h"
#include "elf/object.h"

namespace cuslice {

namespace {

struct FileSource {
    elf_source source;
    int file;
    bool failed = false;
};

size_t read_source(elf_source* source, uint64_t offset, void* into, size_t size) {
    auto& from = *reinterpret_cast<FileSource*>(source);
    return read_at(from.file, offset, into, size, &from.failed);
}

bool is_named(elf_file& file, const Elf64_Shdr& names, const Elf64_Shdr& section, const char* name) {
    char text[32] = {};
    file.source->read(file.source, names.sh_offset + section.sh_name, text, sizeof text - 1);
    return std::strcmp(text, name) == 0;
}

}  // namespace

ProgramSymbols::~ProgramSymbols() {
    if (file_ >= 0)
        close(file_);
}

void ProgramSymbols::heed(const elf_object& object, const Elf64_Dyn& entry) {
    text_changes_ |= entry.d_tag == DT_TEXTREL || (entry.d_tag == DT_FLAGS && entry.d_un.d_val & DF_TEXTREL);
    const char* const needed = entry.d_tag == DT_NEEDED ? elf_object_text(&object, &entry) : nullptr;
    shares_runtime_ |= needed && std::string_view(needed).starts_with("libcudart.so");
}

// The first object that the loader knows. False for one with two segments of code, or none: no linker makes these.
bool ProgramSymbols::find_program() {
    const auto visit = [](dl_phdr_info* info, size_t, void* argument) {
        auto& self = *static_cast<ProgramSymbols*>(argument);
        self.table_.base = info->dlpi_addr;
        self.segments_ = {info->dlpi_phdr, info->dlpi_phnum};
        const elf_object object = elf_object_of(info);
        for (const ElfW(Dyn)* entry = object.dynamic; entry && entry->d_tag != DT_NULL; entry++)
            self.heed(object, *entry);
        return 1;
    };
    dl_iterate_phdr(visit, this);
    AddressRange &program = table_.program, &code = table_.code;
    program = {~uintptr_t{0}, 0};
    int with_code = 0;
    for (const Elf64_Phdr& segment : segments_) {
        if (segment.p_type != PT_LOAD)
            continue;
        const uintptr_t begin = table_.base + segment.p_vaddr;
        program = {std::min(program.begin, begin), std::max(program.end, begin + segment.p_memsz)};
        if (!(segment.p_flags & PF_X))
            continue;
        code = {begin, begin + segment.p_memsz};
        code_offset_ = segment.p_offset;
        with_code++;
    }
    return with_code == 1;
}

ProgramSymbols::Found ProgramSymbols::read() {
    if (!find_program())
        return Found::no_file;
    file_ = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    return file_ < 0 ? Found::unreadable : read_sections();
}

// A program that was started through the loader by name has the loader's file there, which has other segments.
bool ProgramSymbols::is_of_program(elf_file& file) const {
    if (!elf_is_native(&file.header) || file.header.e_phnum != segments_.size())
        return false;
    for (size_t i = 0; i < segments_.size(); i++) {
        Elf64_Phdr segment;
        if (!elf_segment(&file, i, &segment) || std::memcmp(&segment, &segments_[i], sizeof segment) != 0)
            return false;
    }
    return true;
}

ProgramSymbols::Found ProgramSymbols::read_sections() {
    FileSource source{{read_source}, file_};
    elf_file file;
    const bool ours = elf_open(&file, &source.source) && is_of_program(file);
    if (source.failed)
        return Found::unreadable;
    if (!ours)
        return Found::no_file;
    Elf64_Shdr names{}, section, texts{}, symbols{};
    elf_section(&file, file.header.e_shstrndx, &names);
    for (size_t i = 0; elf_section(&file, i, &section); i++) {
        if (section.sh_type == SHT_SYMTAB)
            symbols = section;
        device_code_ |= section.sh_type == SHT_PROGBITS && is_named(file, names, section, ".nv_fatbin");
    }
    const bool has_table = symbols.sh_type == SHT_SYMTAB && elf_section(&file, symbols.sh_link, &texts);
    if (source.failed)
        return Found::unreadable;
    if (!has_table || texts.sh_type != SHT_STRTAB)
        return Found::stripped;
    return text_changes_ ? Found::text_changes : copy_table(symbols, texts);
}

ProgramSymbols::Found ProgramSymbols::copy_table(const Elf64_Shdr& symbols, const Elf64_Shdr& texts) {
    const size_t count = symbols.sh_size / sizeof(Elf64_Sym);
    if (!symbols_.read(file_, symbols.sh_offset, count * sizeof(Elf64_Sym)) ||
        !texts_.read(file_, texts.sh_offset, texts.sh_size))
        return Found::unreadable;
    table_.all = {static_cast<const Elf64_Sym*>(symbols_.data()), count};
    table_.texts = {static_cast<const char*>(texts_.data()), texts.sh_size + 1};
    return Found::table;
}

}  // namespace cuslice
