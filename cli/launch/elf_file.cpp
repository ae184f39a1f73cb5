// SPDX-License-Identifier: Apache-2.0
#include "cli/launch/elf_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace cuslice::cli {

ElfFile::ElfFile(const std::string& path) : data_(MAP_FAILED) {
    struct stat status {};
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return;
    if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
        size_ = static_cast<std::size_t>(status.st_size);
        data_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    }
    ::close(descriptor);
    if (!read(0, 0, &header_)) return;
    elf_ = std::memcmp(header_.e_ident, ELFMAG, SELFMAG) == 0;
    whole_ = elf_ && header_.e_ident[EI_CLASS] == ELFCLASS64;
}

ElfFile::~ElfFile() {
    if (data_ != MAP_FAILED) ::munmap(data_, size_);
}

// One of many items of a kind; false if the file doesn't reach so far.
template <typename Item>
bool ElfFile::read(std::uint64_t offset, std::uint64_t index, Item* item) const {
    if (data_ == MAP_FAILED || index > size_ / sizeof(Item) || offset > size_ ||
        size_ - offset < (index + 1) * sizeof(Item))
        return false;
    std::memcpy(item, static_cast<const char*>(data_) + offset + index * sizeof(Item), sizeof(Item));
    return true;
}

// A text that ends with a NUL; empty if it has no end.
std::string_view ElfFile::text(std::uint64_t offset) const {
    if (data_ == MAP_FAILED || offset >= size_) return {};
    const char* begin = static_cast<const char*>(data_) + offset;
    const void* end = std::memchr(begin, '\0', size_ - offset);
    return end ? std::string_view(begin, static_cast<std::size_t>(static_cast<const char*>(end) - begin))
               : std::string_view();
}

bool ElfFile::segment(std::uint32_t type, Elf64_Phdr* found) const {
    if (!whole_ || header_.e_phentsize != sizeof(Elf64_Phdr)) return false;
    for (std::uint64_t i = 0; i < header_.e_phnum && read(header_.e_phoff, i, found); ++i)
        if (found->p_type == type) return true;
    return false;
}

// Where in the file lies what is loaded to this address; the file's size if nowhere.
std::uint64_t ElfFile::offset_of(std::uint64_t address) const {
    Elf64_Phdr segment;
    for (std::uint64_t i = 0; i < header_.e_phnum && read(header_.e_phoff, i, &segment); ++i)
        if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz)
            return segment.p_offset + (address - segment.p_vaddr);
    return size_;
}

// The names that the dynamic section has, with their tags.
template <typename Visit>
void ElfFile::each_name(Visit visit) const {
    Elf64_Phdr dynamic;
    Elf64_Dyn entry;
    if (!segment(PT_DYNAMIC, &dynamic)) return;
    const std::uint64_t count = dynamic.p_filesz / sizeof entry;
    std::uint64_t strings = size_;
    for (std::uint64_t i = 0; i < count && read(dynamic.p_offset, i, &entry) && entry.d_tag != DT_NULL; ++i)
        if (entry.d_tag == DT_STRTAB) strings = offset_of(entry.d_un.d_ptr);
    for (std::uint64_t i = 0; i < count && read(dynamic.p_offset, i, &entry) && entry.d_tag != DT_NULL; ++i)
        if (entry.d_tag == DT_NEEDED || entry.d_tag == DT_SONAME || entry.d_tag == DT_RPATH ||
            entry.d_tag == DT_RUNPATH)
            visit(entry.d_tag, text(strings + entry.d_un.d_val));
}

std::string_view ElfFile::interpreter() const {
    Elf64_Phdr found;
    return segment(PT_INTERP, &found) ? text(found.p_offset) : std::string_view();
}

std::string_view ElfFile::name_of(Elf64_Sxword wanted) const {
    std::string_view found;
    each_name([&](Elf64_Sxword tag, std::string_view name) {
        if (tag == wanted) found = name;
    });
    return found;
}

std::string_view ElfFile::soname() const { return name_of(DT_SONAME); }

std::string_view ElfFile::search_path(Elf64_Sxword tag) const { return name_of(tag); }

bool ElfFile::needs(std::string_view prefix) const {
    bool found = false;
    each_name([&](Elf64_Sxword tag, std::string_view name) {
        found = found || (tag == DT_NEEDED && name.starts_with(prefix));
    });
    return found;
}

bool ElfFile::has_section(std::string_view name) const {
    Elf64_Shdr names, section;
    if (!whole_ || header_.e_shentsize != sizeof section || !read(header_.e_shoff, header_.e_shstrndx, &names))
        return false;
    for (std::uint64_t i = 0; i < header_.e_shnum && read(header_.e_shoff, i, &section); ++i)
        if (text(names.sh_offset + section.sh_name) == name) return true;
    return false;
}

bool ElfFile::has_symbol(std::string_view name, bool defined) const {
    Elf64_Shdr section, strings;
    if (!whole_ || header_.e_shentsize != sizeof section) return false;
    for (std::uint64_t i = 0; i < header_.e_shnum && read(header_.e_shoff, i, &section); ++i) {
        if (section.sh_type != SHT_DYNSYM || !read(header_.e_shoff, section.sh_link, &strings)) continue;
        Elf64_Sym symbol;
        for (std::uint64_t j = 0; j < section.sh_size / sizeof symbol && read(section.sh_offset, j, &symbol); ++j)
            if ((symbol.st_shndx != SHN_UNDEF) == defined && text(strings.sh_offset + symbol.st_name) == name)
                return true;
    }
    return false;
}

bool ElfFile::contains(std::string_view bytes) const {
    return data_ != MAP_FAILED && ::memmem(data_, size_, bytes.data(), bytes.size()) != nullptr;
}

}  // namespace cuslice::cli
