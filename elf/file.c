// SPDX-License-Identifier: Apache-2.0
#include "elf/file.h"

#include "elf/machine.h"

bool elf_is_known(const Elf64_Ehdr* header) {
    const unsigned char* const ident = header->e_ident;
    uint32_t magic, wanted;
    __builtin_memcpy(&magic, ident, SELFMAG);
    __builtin_memcpy(&wanted, ELFMAG, SELFMAG);
    return magic == wanted && ident[EI_CLASS] == ELFCLASS64 && ident[EI_DATA] == ELFDATA2LSB;
}

bool elf_is_native(const Elf64_Ehdr* header) { return elf_is_known(header) && header->e_machine == elf_own_machine; }

static bool read_whole(const struct elf_file* file, uint64_t offset, void* into, size_t size) {
    return file->source->read(file->source, offset, into, size) == size;
}

bool elf_open(struct elf_file* file, struct elf_source* source) {
    file->source = source;
    return read_whole(file, 0, &file->header, sizeof(file->header)) && elf_is_known(&file->header);
}

struct table {
    uint64_t offset;
    size_t count, entry_size;
};

// False past the last entry, for entries of another size than the one known, and where the file ends before.
static bool read_entry(const struct elf_file* file, struct table table, size_t index, void* into, size_t size) {
    uint64_t offset;
    const bool is_there = index < table.count && table.entry_size == size;
    const bool fits = !__builtin_add_overflow(table.offset, (uint64_t)index * size, &offset);
    return is_there && fits && read_whole(file, offset, into, size);
}

bool elf_segment(const struct elf_file* file, size_t index, Elf64_Phdr* segment) {
    const Elf64_Ehdr* const header = &file->header;
    const size_t count = header->e_phnum < elf_most_segments ? header->e_phnum : elf_most_segments;
    const struct table table = {header->e_phoff, count, header->e_phentsize};
    return read_entry(file, table, index, segment, sizeof(*segment));
}

bool elf_section(const struct elf_file* file, size_t index, Elf64_Shdr* section) {
    const struct table table = {file->header.e_shoff, file->header.e_shnum, file->header.e_shentsize};
    return read_entry(file, table, index, section, sizeof(*section));
}

bool elf_find_segment(const struct elf_file* file, uint32_t type, Elf64_Phdr* found) {
    bool any = false;
    Elf64_Phdr segment;
    for (size_t i = 0; elf_segment(file, i, &segment); i++) {
        if (segment.p_type != type)
            continue;
        *found = segment;
        any = true;
    }
    return any;
}

uint64_t elf_offset_of(const struct elf_file* file, uint64_t address) {
    Elf64_Phdr segment;
    for (size_t i = 0; elf_segment(file, i, &segment); i++) {
        const uint64_t within = address - segment.p_vaddr;
        if (segment.p_type == PT_LOAD && within < segment.p_filesz)
            return segment.p_offset + within;
    }
    return ELF_NOWHERE;
}

struct elf_dynamic elf_find_dynamic(const struct elf_file* file) {
    struct elf_dynamic dynamic = {ELF_NOWHERE, ELF_NOWHERE};
    Elf64_Phdr segment;
    Elf64_Dyn entry;
    if (elf_find_segment(file, PT_DYNAMIC, &segment))
        dynamic.entries = elf_offset_of(file, segment.p_vaddr);
    for (size_t i = 0; elf_dynamic_entry(file, &dynamic, i, &entry); i++)
        if (entry.d_tag == DT_STRTAB)
            dynamic.texts = elf_offset_of(file, entry.d_un.d_ptr);
    return dynamic;
}

bool elf_dynamic_entry(const struct elf_file* file, const struct elf_dynamic* dynamic, size_t index, Elf64_Dyn* entry) {
    const struct table table = {dynamic->entries, elf_most_dynamic_entries, sizeof(*entry)};
    return read_entry(file, table, index, entry, sizeof(*entry)) && entry->d_tag != DT_NULL;
}

uint64_t elf_text_of(const struct elf_dynamic* dynamic, const Elf64_Dyn* entry) {
    uint64_t offset;
    const bool fits =
        dynamic->texts != ELF_NOWHERE && !__builtin_add_overflow(dynamic->texts, entry->d_un.d_val, &offset);
    return fits ? offset : ELF_NOWHERE;
}
