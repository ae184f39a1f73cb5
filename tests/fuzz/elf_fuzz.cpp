// SPDX-License-Identifier: Apache-2.0
// The readers of the loader's cache and of ELF files, with anything in their place. The first byte says which one. They
// must not read outside, nor go on for long; what a program is to find lies in a segment; and a window gives what its
// source has.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "elf/loader_cache.h"
#include "elf/window.h"

namespace {

void expect(bool holds) {
    if (!holds)
        std::abort();
}

struct Bytes : elf_source {
    const uint8_t* data;
    size_t size;

    Bytes(const uint8_t* from, size_t count) : elf_source{&copy}, data(from), size(count) {}
    static size_t copy(elf_source* source, uint64_t offset, void* into, size_t wanted) {
        const auto& bytes = *static_cast<Bytes*>(source);
        if (offset >= bytes.size)
            return 0;
        wanted = std::min<uint64_t>(wanted, bytes.size - offset);
        std::memcpy(into, bytes.data + offset, wanted);
        return wanted;
    }
};

void read_cache(const uint8_t* data, size_t size) {
    const elf_cache cache = elf_open_cache(data, size);
    const auto begin = reinterpret_cast<const char*>(data), end = begin + size;
    size_t place = 0, found = 0;
    while (const char* const path = elf_next_in_cache(&cache, "libc.so.6", &place)) {
        expect(path >= begin && path < end && std::memchr(path, 0, static_cast<size_t>(end - path)));
        found++;
    }
    expect(found <= cache.count && place == cache.count);
}

// True for a byte of the file that some segment loads, or for none.
bool is_loaded(const elf_file& file, uint64_t offset) {
    Elf64_Phdr segment;
    for (size_t i = 0; elf_segment(&file, i, &segment); i++)
        if (segment.p_type == PT_LOAD && offset - segment.p_offset < segment.p_filesz)
            return true;
    return offset == ELF_NOWHERE;
}

size_t read_names(elf_source& source) {
    elf_file file;
    if (!elf_open(&file, &source))
        return 0;
    const elf_dynamic dynamic = elf_find_dynamic(&file);
    expect(is_loaded(file, dynamic.entries) && is_loaded(file, dynamic.texts));
    Elf64_Dyn entry;
    Elf64_Shdr section;
    size_t sum = 0;
    for (size_t i = 0; elf_dynamic_entry(&file, &dynamic, i, &entry); i++) {
        char text[300];
        size_t length = 0;
        if (!elf_read_text(&source, elf_text_of(&dynamic, &entry), text, sizeof text, &length))
            continue;
        expect(std::string_view(text).size() == length);
        sum = sum * 31 + length;
    }
    for (size_t i = 0; elf_section(&file, i, &section); i++)
        sum = sum * 31 + section.sh_type;
    return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0)
        return 0;
    if (data[0] % 2 == 0) {
        read_cache(data + 1, size - 1);
        return 0;
    }
    Bytes bytes(data + 1, size - 1);
    elf_window window;
    elf_open_window(&window, &bytes);
    expect(read_names(bytes) == read_names(window.source));
    return 0;
}
