// SPDX-License-Identifier: Apache-2.0
#include "stub/library_file.h"

#include <stdint.h>

#include "stub/kernel.h"

#if defined(__x86_64__)
enum { machine = EM_X86_64 };
#else
enum { machine = EM_AARCH64 };
#endif

// Limits of what is read of a file: anything beyond is left out.
enum { most_segments = 128, most_entries = 1024, longest_text = 16 << 10 };
static const uint64_t nowhere = UINT64_MAX;

struct reading {
    long file;
    struct work* work;
    Elf64_Phdr* segments;
    size_t segment_count;
    size_t head_size;
    char head[4096] __attribute__((aligned(16)));  // where small libraries have most of what is asked for
};

bool is_for_this_machine(const Elf64_Ehdr* header) {
    const unsigned char* ident = header->e_ident;
    return ident[0] == 0x7f && ident[1] == 'E' && ident[2] == 'L' && ident[3] == 'F' && ident[EI_CLASS] == ELFCLASS64 &&
           ident[EI_DATA] == ELFDATA2LSB && header->e_machine == machine;
}

// As much of it as there is.
static size_t read_at(struct reading* reading, uint64_t offset, void* to, size_t size) {
    if (offset < reading->head_size && size <= reading->head_size - offset) {
        for (size_t i = 0; i < size; i++) ((char*)to)[i] = reading->head[offset + i];
        return size;
    }
    size_t got = 0;
    while (got < size && offset <= INT64_MAX - size) {
        const long more =
            kernel(SYS_pread64, reading->file, (long)to + (long)got, (long)(size - got), (long)(offset + got), 0, 0);
        if (more <= 0) break;
        got += (size_t)more;
    }
    return got;
}

static uint64_t offset_of(const struct reading* reading, uint64_t address) {
    for (size_t i = 0; i < reading->segment_count; i++) {
        const Elf64_Phdr* segment = &reading->segments[i];
        if (segment->p_type == PT_LOAD && address - segment->p_vaddr < segment->p_filesz)
            return segment->p_offset + (address - segment->p_vaddr);
    }
    return nowhere;
}

static const char* read_text(struct reading* reading, uint64_t offset) {
    enum { at_once = 128 };
    struct work* work = reading->work;
    char* const text = work->next;
    for (size_t size = 0; size < longest_text && left_in(work) > size + at_once;) {
        const size_t got = read_at(reading, offset + size, text + size, at_once);
        for (const size_t end = size + got; size < end; size++)
            if (!text[size]) {
                work->next = text + size + 1;
                return text;
            }
        if (got < at_once) break;
    }
    return NULL;
}

static bool read_segments(struct reading* reading) {
    Elf64_Ehdr header;
    if (read_at(reading, 0, &header, sizeof(header)) < sizeof(header) || !is_for_this_machine(&header)) return false;
    if (header.e_type != ET_DYN || header.e_phentsize != sizeof(Elf64_Phdr)) return false;
    reading->segment_count = header.e_phnum < most_segments ? header.e_phnum : most_segments;
    const size_t size = reading->segment_count * sizeof(Elf64_Phdr);
    reading->segments = take_from(reading->work, size);
    return reading->segments && read_at(reading, header.e_phoff, reading->segments, size) == size;
}

// The section's entries up to its end, or as many as there are.
static const Elf64_Dyn* read_dynamic(struct reading* reading, size_t* count) {
    enum { at_once = 32 };
    uint64_t offset = nowhere;
    for (size_t i = 0; i < reading->segment_count; i++)
        if (reading->segments[i].p_type == PT_DYNAMIC) offset = offset_of(reading, reading->segments[i].p_vaddr);
    Elf64_Dyn* const entries = take_from(reading->work, 0);
    for (*count = 0; offset != nowhere && *count < most_entries; offset += at_once * sizeof(Elf64_Dyn)) {
        if (!take_from(reading->work, at_once * sizeof(Elf64_Dyn))) break;
        const size_t got = read_at(reading, offset, entries + *count, at_once * sizeof(Elf64_Dyn)) / sizeof(Elf64_Dyn);
        for (size_t i = 0; i < got; i++, ++*count)
            if (entries[*count].d_tag == DT_NULL) return entries;
        if (got < at_once) break;
    }
    return entries;
}

static bool read_dependencies(struct reading* reading, struct library_file* library) {
    size_t count = 0, needs = 0;
    uint64_t strings = nowhere, rpath = nowhere, runpath = nowhere;
    const Elf64_Dyn* const entries = read_dynamic(reading, &count);
    for (size_t i = 0; i < count; i++) {
        const uint64_t value = entries[i].d_un.d_val;
        if (entries[i].d_tag == DT_STRTAB) strings = offset_of(reading, value);
        if (entries[i].d_tag == DT_RPATH) rpath = value;
        if (entries[i].d_tag == DT_RUNPATH) runpath = value;
        if (entries[i].d_tag == DT_NEEDED) needs++;
    }
    library->needs = take_from(reading->work, needs * sizeof(char*));
    if (strings == nowhere || !library->needs) return true;
    if (runpath != nowhere)
        library->runpath = read_text(reading, strings + runpath);
    else if (rpath != nowhere)
        library->rpath = read_text(reading, strings + rpath);
    for (size_t i = 0; i < count; i++) {
        if (entries[i].d_tag != DT_NEEDED) continue;
        const char* const name = read_text(reading, strings + entries[i].d_un.d_val);
        if (name) library->needs[library->needs_count++] = name;
    }
    return true;
}

bool read_library_file(const char* path, struct work* work, struct library_file* library) {
    // Nothing waits for the other end of a pipe, and no terminal becomes the program's own.
    const int how = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    *library = (struct library_file){NULL, NULL, NULL, 0};
    struct reading* const reading = lend_from(work, sizeof(*reading));
    if (!reading) return false;
    const long file = kernel(SYS_openat, AT_FDCWD, (long)path, how, 0, 0, 0);
    bool read = false;
    if (file >= 0) {
        reading->file = file;
        reading->work = work;
        reading->segment_count = reading->head_size = 0;
        reading->head_size = read_at(reading, 0, reading->head, sizeof(reading->head));
        read = read_segments(reading) && read_dependencies(reading, library);
        close_file(file);
    }
    give_back_to(work, sizeof(*reading));
    return read;
}
