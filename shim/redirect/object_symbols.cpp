// SPDX-License-Identifier: Apache-2.0
#include "shim/redirect/object_symbols.h"

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "elf/file.h"
#include "elf/object.h"
#include "shim/redirect/file_source.h"
#include "virtual_gpu/driver/scratch.h"

namespace cuslice {

namespace {

bool is_named(elf_file& file, const Elf64_Shdr& names, const Elf64_Shdr& section, const char* name) {
    char text[32] = {};
    file.source->read(file.source, names.sh_offset + section.sh_name, text, sizeof text - 1);
    return std::strcmp(text, name) == 0;
}

// The segments of a library, from its own header in memory; none if that isn't where libraries have it.
std::span<const Elf64_Phdr> segments_at(const link_map& library) {
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const uintptr_t base = library.l_addr;
    unsigned char resident = 0;
    if (base % page != 0 || mincore(reinterpret_cast<void*>(base), page, &resident) != 0)
        return {};
    const auto& header = *reinterpret_cast<const Elf64_Ehdr*>(base);
    const bool usual =
        elf_is_native(&header) && header.e_phentsize == sizeof(Elf64_Phdr) && header.e_phoff % alignof(Elf64_Phdr) == 0;
    const bool fits = header.e_phoff < page && header.e_phnum <= (page - header.e_phoff) / sizeof(Elf64_Phdr);
    if (!usual || !fits)
        return {};
    const std::span segments(reinterpret_cast<const Elf64_Phdr*>(base + header.e_phoff), header.e_phnum);
    const auto is_dynamic = [&](const Elf64_Phdr& one) {
        return one.p_type == PT_DYNAMIC && base + one.p_vaddr == reinterpret_cast<uintptr_t>(library.l_ld);
    };
    return std::any_of(segments.begin(), segments.end(), is_dynamic) ? segments : std::span<const Elf64_Phdr>();
}

}  // namespace

ObjectSymbols::~ObjectSymbols() {
    if (file_ >= 0)
        close(file_);
}

void ObjectSymbols::heed(const elf_object& object, const Elf64_Dyn& entry) {
    text_changes_ |= entry.d_tag == DT_TEXTREL || (entry.d_tag == DT_FLAGS && entry.d_un.d_val & DF_TEXTREL);
    const char* const needed = entry.d_tag == DT_NEEDED ? elf_object_text(&object, &entry) : nullptr;
    shares_runtime_ |= needed && std::string_view(needed).starts_with("libcudart.so");
}

void ObjectSymbols::heed_all(const elf_object& object) {
    for (const ElfW(Dyn)* entry = object.dynamic; entry && entry->d_tag != DT_NULL; entry++)
        heed(object, *entry);
}

// Where the object and its code lie. False for one with two segments of code, or none: no linker makes these.
bool ObjectSymbols::measure() {
    AddressRange &whole = table_.whole, &code = table_.code;
    whole = {~uintptr_t{0}, 0};
    int with_code = 0;
    for (const Elf64_Phdr& segment : segments_) {
        if (segment.p_type != PT_LOAD)
            continue;
        const uintptr_t begin = table_.base + segment.p_vaddr;
        whole = {std::min(whole.begin, begin), std::max(whole.end, begin + segment.p_memsz)};
        if (!(segment.p_flags & PF_X))
            continue;
        code = {begin, begin + segment.p_memsz};
        code_offset_ = segment.p_offset;
        with_code++;
    }
    return with_code == 1;
}

ObjectSymbols::Found ObjectSymbols::read(const char* path) {
    if (!measure())
        return Found::no_file;
    file_ = open(path, O_RDONLY | O_CLOEXEC);
    return file_ < 0 ? Found::unreadable : read_sections();
}

// The first object that the loader knows.
ObjectSymbols::Found ObjectSymbols::read_program() {
    const auto visit = [](dl_phdr_info* info, size_t, void* argument) {
        auto& self = *static_cast<ObjectSymbols*>(argument);
        self.table_.base = info->dlpi_addr;
        self.segments_ = {info->dlpi_phdr, info->dlpi_phnum};
        self.heed_all(elf_object_of(info));
        return 1;
    };
    dl_iterate_phdr(visit, this);
    return read("/proc/self/exe");
}

ObjectSymbols::Found ObjectSymbols::read_library(const link_map& library) {
    table_.base = library.l_addr;
    segments_ = segments_at(library);
    heed_all(elf_object_at(library.l_addr, library.l_ld));
    return read(library.l_name);
}

// A program that was started through the loader by name has the loader's file there, which has other segments.
bool ObjectSymbols::is_of_object(elf_file& file) const {
    if (!elf_is_native(&file.header) || file.header.e_phnum != segments_.size())
        return false;
    for (size_t i = 0; i < segments_.size(); i++) {
        Elf64_Phdr segment;
        if (!elf_segment(&file, i, &segment) || std::memcmp(&segment, &segments_[i], sizeof segment) != 0)
            return false;
    }
    return true;
}

ObjectSymbols::Found ObjectSymbols::read_sections() {
    FileSource source(file_);
    elf_file file;
    const bool ours = elf_open(&file, source) && is_of_object(file);
    if (source.failed())
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
    if (source.failed())
        return Found::unreadable;
    if (!has_table || texts.sh_type != SHT_STRTAB)
        return Found::stripped;
    return copy_table(symbols, texts);
}

// Piece by piece, each with the end of the one before: TensorFlow's library has 190 MB of names, which nobody wants a
// copy of.
bool ObjectSymbols::names_runtime(const Elf64_Shdr& texts, bool* failed) const {
    constexpr size_t kPiece = 32768, kName = sizeof kPrivateNames - 1;
    char* const piece = static_cast<char*>(take_scratch(kPiece));
    bool found = false;
    *failed |= !piece;
    for (uint64_t at = 0; at < texts.sh_size && !found && !*failed; at += kPiece - kName) {
        const size_t wanted = std::min<uint64_t>(kPiece, texts.sh_size - at);
        const size_t got = read_at(file_, texts.sh_offset + at, piece, wanted, failed);
        found = memmem(piece, got, kPrivateNames, kName) != nullptr;
        if (got < wanted)
            break;
    }
    give_back_scratch(piece, kPiece);
    return found;
}

ObjectSymbols::Found ObjectSymbols::copy_table(const Elf64_Shdr& symbols, const Elf64_Shdr& texts) {
    bool failed = false;
    if (!names_runtime(texts, &failed))
        return failed ? Found::unreadable : Found::no_runtime;
    const size_t count = symbols.sh_size / sizeof(Elf64_Sym);
    if (!symbols_.read(file_, symbols.sh_offset, count * sizeof(Elf64_Sym)) ||
        !texts_.read(file_, texts.sh_offset, texts.sh_size))
        return Found::unreadable;
    table_.all = {static_cast<const Elf64_Sym*>(symbols_.data()), count};
    table_.texts = {static_cast<const char*>(texts_.data()), texts.sh_size + 1};
    return Found::table;
}

}  // namespace cuslice
