// SPDX-License-Identifier: Apache-2.0
#include "shim/redirect/runtime_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "shim/redirect/file_source.h"
#include "shim/redirect/runtime_places.h"
#include "virtual_gpu/driver/scratch.h"

namespace cuslice {

namespace {

bool is_before(const char* a, const char* b) { return std::strcmp(a, b) < 0; }

bool is_exported(const Elf64_Sym& symbol) {
    return symbol.st_shndx != SHN_UNDEF && ELF64_ST_BIND(symbol.st_info) != STB_LOCAL;
}

}  // namespace

bool RuntimeFile::read(const char* path, int major) {
    path_.assign(path);
    forget();
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return false;
    FileSource source(descriptor);
    elf_file file;
    const bool known = elf_open(&file, source) && elf_is_native(&file.header) && has_soname(file, major);
    const bool read = known && read_sections(file, descriptor);
    close(descriptor);
    return read;
}

bool RuntimeFile::has_soname(const elf_file& file, int major) const {
    const elf_dynamic dynamic = elf_find_dynamic(&file);
    Elf64_Dyn entry{};
    for (size_t i = 0; elf_dynamic_entry(&file, &dynamic, i, &entry); i++) {
        if (entry.d_tag != DT_SONAME)
            continue;
        char soname[64] = {};
        const uint64_t text = elf_text_of(&dynamic, &entry);
        file.source->read(file.source, text, soname, sizeof soname - 1);
        return soname_of_runtime(major).view() == soname;
    }
    return false;
}

bool RuntimeFile::read_sections(elf_file& file, int descriptor) {
    Elf64_Shdr symbols{}, texts{};
    for (size_t i = 0; symbols.sh_type != SHT_DYNSYM && elf_section(&file, i, &symbols); i++) {
    }
    if (symbols.sh_type != SHT_DYNSYM || !elf_section(&file, symbols.sh_link, &texts))
        return false;
    const size_t count = symbols.sh_size / sizeof(Elf64_Sym);
    if (!symbols_.read(descriptor, symbols.sh_offset, count * sizeof(Elf64_Sym)) ||
        !texts_.read(descriptor, texts.sh_offset, texts.sh_size))
        return false;
    return note_names(count, texts.sh_size);
}

void RuntimeFile::forget() {
    give_back_scratch(names_, room_ * sizeof(*names_));
    names_ = nullptr;
    room_ = count_ = 0;
}

bool RuntimeFile::note_names(size_t symbols, size_t text_bytes) {
    if (symbols == 0 || symbols > kMost)
        return false;
    names_ = static_cast<const char**>(take_scratch(symbols * sizeof(*names_)));
    if (!names_)
        return false;
    room_ = symbols;
    const auto* const all = static_cast<const Elf64_Sym*>(symbols_.data());
    const auto* const texts = static_cast<const char*>(texts_.data());
    for (size_t i = 0; i < symbols; i++)
        if (is_exported(all[i]) && all[i].st_name < text_bytes)
            names_[count_++] = texts + all[i].st_name;
    std::sort(names_, names_ + count_, is_before);
    return true;
}

bool RuntimeFile::exports(const char* name) const {
    return std::binary_search(names_, names_ + count_, name, is_before);
}

void* RuntimeFile::find(const char* name, void* self) {
    return static_cast<RuntimeFile*>(self)->exports(name) ? self : nullptr;
}

SharedRuntime RuntimeFile::functions() { return {path_.c_str(), find, this, exports(kLacking) ? this : nullptr}; }

}  // namespace cuslice
