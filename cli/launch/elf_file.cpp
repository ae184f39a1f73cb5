// SPDX-License-Identifier: Apache-2.0
#include "cli/launch/elf_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

namespace cuslice::cli {

ElfFile::ElfFile(const std::string& path) {
    struct stat status {};
    source_.elf_source::read = read;
    // Nothing waits for the other end of a pipe.
    source_.descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (source_.descriptor >= 0 && ::fstat(source_.descriptor, &status) == 0 && S_ISREG(status.st_mode))
        source_.size = status.st_size;
    elf_open_window(&window_, &source_);
    known_ = elf_open(&file_, &window_.source);
}

ElfFile::~ElfFile() {
    if (source_.descriptor >= 0)
        ::close(source_.descriptor);
}

size_t ElfFile::read(elf_source* from, uint64_t offset, void* into, size_t size) {
    const auto& source = *static_cast<const Source*>(from);
    const auto end = static_cast<uint64_t>(source.size);
    if (offset >= end)
        return 0;
    size = std::min<uint64_t>(size, end - offset);
    size_t got = 0;
    while (got < size) {
        const ssize_t more =
            ::pread(source.descriptor, static_cast<char*>(into) + got, size - got, static_cast<off_t>(offset + got));
        if (more <= 0)
            break;
        got += static_cast<size_t>(more);
    }
    return got;
}

bool ElfFile::is_elf() const {
    return window_.head.size >= SELFMAG && std::memcmp(window_.head.bytes, ELFMAG, SELFMAG) == 0;
}

// As much of it as the file has.
std::string ElfFile::read_all(uint64_t offset, uint64_t size) const {
    const auto end = static_cast<uint64_t>(source_.size);
    std::string bytes(offset < end ? std::min(size, end - offset) : 0, '\0');
    bytes.resize(read(&source_, offset, bytes.data(), bytes.size()));
    return bytes;
}

// A text that ends with a NUL; empty if it has no end, or a longer one than any path.
std::string ElfFile::text(uint64_t offset) const {
    char bytes[1 << 16];
    size_t length = 0;
    if (!known_ || !elf_read_text(&window_.source, offset, bytes, sizeof bytes, &length))
        return {};
    return {bytes, length};
}

std::string ElfFile::interpreter() const {
    Elf64_Phdr found;
    return known_ && elf_find_segment(&file_, PT_INTERP, &found) ? text(found.p_offset) : std::string();
}

// True if `visit` returns true for one of the names that the dynamic section has with this tag.
template <typename Visit>
bool ElfFile::any_name(Elf64_Sxword tag, Visit visit) const {
    if (!known_)
        return false;
    const elf_dynamic dynamic = elf_find_dynamic(&file_);
    Elf64_Dyn entry;
    for (size_t i = 0; elf_dynamic_entry(&file_, &dynamic, i, &entry); ++i)
        if (entry.d_tag == tag && visit(text(elf_text_of(&dynamic, &entry))))
            return true;
    return false;
}

// The last one, as the loader has it.
std::string ElfFile::name_of(Elf64_Sxword tag) const {
    std::string found;
    any_name(tag, [&](std::string name) {
        found = std::move(name);
        return false;
    });
    return found;
}

bool ElfFile::needs(std::string_view prefix) const {
    return any_name(DT_NEEDED, [&](std::string_view name) { return name.starts_with(prefix); });
}

bool ElfFile::has_section(std::string_view name) const {
    Elf64_Shdr names, section;
    if (!known_ || !elf_section(&file_, file_.header.e_shstrndx, &names))
        return false;
    for (size_t i = 0; elf_section(&file_, i, &section); ++i)
        if (text(names.sh_offset + section.sh_name) == name)
            return true;
    return false;
}

namespace {

bool begins_at(const std::string& texts, size_t offset, std::string_view name) {
    if (offset >= texts.size() || texts.size() - offset <= name.size())
        return false;
    return texts.compare(offset, name.size(), name) == 0 && texts[offset + name.size()] == '\0';
}

}  // namespace

bool ElfFile::has_symbol(std::string_view name, bool defined) const {
    Elf64_Shdr section, strings;
    for (size_t i = 0; known_ && elf_section(&file_, i, &section); ++i) {
        if (section.sh_type != SHT_DYNSYM || !elf_section(&file_, section.sh_link, &strings))
            continue;
        const std::string symbols = read_all(section.sh_offset, section.sh_size);
        const std::string texts = read_all(strings.sh_offset, strings.sh_size);
        Elf64_Sym symbol;
        for (size_t at = 0; at + sizeof symbol <= symbols.size(); at += sizeof symbol) {
            std::memcpy(&symbol, symbols.data() + at, sizeof symbol);
            if ((symbol.st_shndx != SHN_UNDEF) == defined && begins_at(texts, symbol.st_name, name))
                return true;
        }
    }
    return false;
}

bool ElfFile::contains(std::string_view bytes) const {
    constexpr uint64_t kAtOnce = 1 << 20;
    const auto end = static_cast<uint64_t>(source_.size);
    for (uint64_t at = 0; at < end; at += kAtOnce)
        if (read_all(at, kAtOnce + bytes.size() - 1).find(bytes) != std::string::npos)
            return true;
    return false;
}

}  // namespace cuslice::cli
