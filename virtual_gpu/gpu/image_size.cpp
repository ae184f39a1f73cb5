// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/image_size.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "elf/file.h"
#include "policy/base/own_memory.h"
#include "virtual_gpu/driver/cubin.h"
#include "virtual_gpu/driver/fat_binary.h"
#include "virtual_gpu/gpu/ptx_size.h"

namespace cuslice {

namespace {

constexpr size_t kPage = 4096;

// Some bytes of memory, or of a file, as far as they can be read.
class Source : public elf_source {
  public:
    explicit Source(const void* memory) : memory_(reinterpret_cast<uintptr_t>(memory)) {
        elf_source::read = read_through;
    }
    explicit Source(int file) : file_(file) { elf_source::read = read_through; }

    // How many bytes were read.
    size_t read(uint64_t offset, void* into, size_t size) const {
        if (offset >= end_)
            return 0;
        size = std::min<uint64_t>(size, end_ - offset);
        if (file_ >= 0) {
            const ssize_t got = pread(file_, into, size, static_cast<off_t>(start_ + offset));
            return got > 0 ? static_cast<size_t>(got) : 0;
        }
        return read_own_memory(memory_ + offset, into, size);
    }
    template <typename T>
    bool read(uint64_t offset, T* value) const {
        return read(offset, value, sizeof *value) == sizeof *value;
    }
    // Up to where memory may end.
    size_t to_page_end(uint64_t offset) const { return file_ >= 0 ? kPage : kPage - (memory_ + offset) % kPage; }
    // A part of it, beyond which nothing is read.
    Source part(uint64_t offset, uint64_t size) const {
        Source source = *this;
        source.memory_ += offset;
        source.start_ += offset;
        source.end_ = offset < end_ ? std::min(size, end_ - offset) : 0;
        return source;
    }

  private:
    static size_t read_through(elf_source* source, uint64_t offset, void* into, size_t size) {
        return static_cast<Source*>(source)->read(offset, into, size);
    }

    uintptr_t memory_ = 0;
    uint64_t start_ = 0;  // in the file
    uint64_t end_ = ~0ull;
    int file_ = -1;
};

using Wrapper = FatBinaryWrapper;
using Container = FatBinaryContainer;
using Entry = FatBinaryEntry;

// The sections that variables lie in: few, whatever else there is.
struct Sections {
    static constexpr unsigned kMax = 8;
    unsigned indices[kMax], count = 0;
    bool has(unsigned index) const { return std::find(indices, indices + count, index) != indices + count; }
};

uint64_t add_up_symbols(const Source& source, const Elf64_Shdr& table, const Sections& sections) {
    uint64_t bytes = 0;
    Elf64_Sym symbols[64];
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size;) {
        const uint64_t left = table.sh_size - at;
        const size_t got =
            source.read(table.sh_offset + at, symbols, std::min<uint64_t>(sizeof symbols, left)) / sizeof(Elf64_Sym);
        if (!got)
            break;
        for (size_t i = 0; i < got; i++)
            if (ELF64_ST_TYPE(symbols[i].st_info) == STT_OBJECT && !(symbols[i].st_other & kManagedSymbol) &&
                sections.has(symbols[i].st_shndx))
                bytes = std::max(bytes, bytes + symbols[i].st_size);
        at += got * sizeof(Elf64_Sym);
    }
    return bytes;
}

uint64_t size_of_cubin(Source source) {
    elf_file file;
    Elf64_Shdr names, section;
    if (!elf_open(&file, &source) || !is_cubin(file.header) || !elf_section(&file, file.header.e_shstrndx, &names))
        return 0;
    constexpr uint64_t kWritable = SHF_ALLOC | SHF_WRITE;
    Sections sections;
    for (unsigned i = 0; elf_section(&file, i, &section) && sections.count < Sections::kMax; i++) {
        char name[kGlobals.size()];
        if ((section.sh_flags & kWritable) == kWritable && source.read(names.sh_offset + section.sh_name, &name) &&
            std::string_view(name, sizeof name) == kGlobals)
            sections.indices[sections.count++] = i;
    }
    uint64_t bytes = 0;
    for (unsigned i = 0; sections.count && elf_section(&file, i, &section); i++)
        if (section.sh_type == SHT_SYMTAB)
            bytes += add_up_symbols(source, section, sections);
    return bytes;
}

uint64_t size_of_ptx(const Source& source, uint64_t size) {
    PtxSize ptx;
    char text[kPage];
    for (uint64_t at = 0; at < size;) {
        const size_t got = source.read(at, text, std::min<uint64_t>(source.to_page_end(at), size - at));
        const size_t length = strnlen(text, got);
        ptx.add({text, length});
        if (!got || length < got)
            break;
        at += got;
    }
    return ptx.bytes();
}

uint64_t size_of_entry(const Source& code, const Entry& entry) {
    if (entry.is_compressed())
        return 0;
    if (entry.kind == Entry::kPtx)
        return size_of_ptx(code, entry.size);
    return entry.kind == Entry::kCubin ? size_of_cubin(code) : 0;
}

// The driver picks one image of the fat binary: charge the smallest.
uint64_t size_of_container(const Source& source) {
    Container container;
    if (!source.read(0, &container) || container.magic != Container::kMagic || container.header_size < sizeof container)
        return 0;
    uint64_t least = ~0ull;
    uint64_t end;
    if (__builtin_add_overflow(container.size, container.header_size, &end))
        return 0;
    for (uint64_t at = container.header_size; at + sizeof(Entry) <= end && least;) {
        Entry entry;
        if (!source.read(at, &entry) || !entry.fits(end - at))
            return 0;
        least = std::min(least, size_of_entry(source.part(at + entry.header_size, entry.size), entry));
        at += entry.bytes();
    }
    return least == ~0ull ? 0 : least;
}

uint64_t size_of(const Source& source) {
    unsigned char first[4];
    if (source.read(0, first, sizeof first) < 2)
        return 0;
    if (std::memcmp(first, ELFMAG, SELFMAG) == 0)
        return size_of_cubin(source);
    uint32_t magic;
    std::memcpy(&magic, first, sizeof magic);
    Wrapper wrapper;
    if (magic == Wrapper::kMagic)
        return source.read(0, &wrapper) ? size_of_container(Source(wrapper.container)) : 0;
    if (magic == Container::kMagic)
        return size_of_container(source);
    return size_of_ptx(source, ~0ull);
}

}  // namespace

uint64_t least_size_of_image(const void* image) {
    const int saved_errno = errno;
    const uint64_t bytes = image ? size_of(Source(image)) : 0;
    errno = saved_errno;
    return bytes;
}

uint64_t least_size_of_image_file(const char* path) {
    const int saved_errno = errno;
    // Not to wait for whoever writes to a FIFO: that is the driver's to do.
    const int file = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    uint64_t bytes = 0;
    if (file >= 0) {
        bytes = size_of(Source(file));
        close(file);
    }
    errno = saved_errno;
    return bytes;
}

}  // namespace cuslice
