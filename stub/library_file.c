// SPDX-License-Identifier: Apache-2.0
#include "stub/library_file.h"

#include "elf/window.h"
#include "stub/kernel.h"

struct open_file {
    struct elf_source source;
    long descriptor;
    bool failed;  // a read did, otherwise than of what is no file
};

struct reading {
    struct work* work;
    struct elf_file file;
    struct elf_dynamic dynamic;
    struct open_file open;
    struct elf_window window;
};

static size_t read_at(struct elf_source* source, uint64_t offset, void* into, size_t size) {
    struct open_file* const open = (struct open_file*)source;
    size_t got = 0;
    while (got < size && offset <= INT64_MAX - size) {
        const long more = kernel(SYS_pread64, open->descriptor, (long)into + (long)got, (long)(size - got),
                                 (long)(offset + got), 0, 0);
        if (more <= 0) {
            open->failed |= more < 0 && more != -EISDIR && more != -ESPIPE && more != -EINVAL;
            break;
        }
        got += (size_t)more;
    }
    return got;
}

// The text that the entry names, in working memory; null if there is none, or no room for it.
static const char* read_text(struct reading* reading, const Elf64_Dyn* entry) {
    enum { longest_text = 16 << 10 };
    struct work* const work = reading->work;
    char* const text = work->next;
    const size_t room = left_in(work) < longest_text ? left_in(work) : longest_text;
    size_t length;
    const uint64_t offset = elf_text_of(&reading->dynamic, entry);
    if (offset == ELF_NOWHERE || !elf_read_text(reading->file.source, offset, text, room, &length))
        return NULL;
    work->next = text + length + 1;
    return text;
}

static void read_dependencies(struct reading* reading, struct library_file* library) {
    size_t needs = 0, count = 0;
    Elf64_Dyn entry = {DT_DEBUG, {0}}, rpath = {DT_NULL, {0}}, runpath = {DT_NULL, {0}};
    reading->dynamic = elf_find_dynamic(&reading->file);
    for (; elf_dynamic_entry(&reading->file, &reading->dynamic, count, &entry); count++) {
        if (entry.d_tag == DT_RPATH)
            rpath = entry;
        if (entry.d_tag == DT_RUNPATH)
            runpath = entry;
        if (entry.d_tag == DT_NEEDED)
            needs++;
    }
    library->needs = take_from(reading->work, needs * sizeof(char*));
    // The loader maps whole pages, and finds more than lies in the segments by their sizes.
    const bool read_to_end = entry.d_tag == DT_NULL && reading->file.header.e_phnum <= elf_most_segments;
    library->incomplete = !library->needs || !read_to_end;
    if (!library->needs)
        return;
    const bool has_runpath = runpath.d_tag == DT_RUNPATH, has_rpath = !has_runpath && rpath.d_tag == DT_RPATH;
    if (has_runpath)
        library->runpath = read_text(reading, &runpath);
    if (has_rpath)
        library->rpath = read_text(reading, &rpath);
    library->incomplete |= (has_runpath && !library->runpath) || (has_rpath && !library->rpath);
    // A file that is being written may have more of them now.
    for (size_t i = 0; i < count && library->needs_count < needs; i++) {
        if (!elf_dynamic_entry(&reading->file, &reading->dynamic, i, &entry))
            break;
        const char* const name = entry.d_tag == DT_NEEDED ? read_text(reading, &entry) : NULL;
        if (name)
            library->needs[library->needs_count++] = name;
    }
    library->incomplete |= library->needs_count < needs;
}

// True for a file that the loader would open as a library.
static bool is_library(const Elf64_Ehdr* header) {
    return elf_is_native(header) && header->e_type == ET_DYN && header->e_phentsize == sizeof(Elf64_Phdr);
}

// False for a file that ends before its segments are described, or has no dynamic section: the loader refuses it.
static bool has_dynamic_section(const struct elf_file* file) {
    const bool has_more = file->header.e_phnum > elf_most_segments;
    const size_t count = has_more ? elf_most_segments : file->header.e_phnum;
    Elf64_Phdr segment;
    if (count == 0 || !elf_segment(file, count - 1, &segment))
        return false;
    return has_more || elf_find_segment(file, PT_DYNAMIC, &segment);
}

static enum reading_result read_open_file(struct reading* reading, struct library_file* library) {
    reading->open.source.read = read_at;
    elf_open_window(&reading->window, &reading->open.source);
    const bool is_one = elf_open(&reading->file, &reading->window.source) && is_library(&reading->file.header) &&
                        has_dynamic_section(&reading->file);
    if (is_one)
        read_dependencies(reading, library);
    if (reading->open.failed)
        return library_unknown;
    return is_one ? library_read : no_library;
}

enum reading_result read_library_file(const char* path, struct work* work, struct library_file* library) {
    // Nothing waits for the other end of a pipe, and no terminal becomes the program's own.
    const int how = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    enum { lent = (sizeof(struct reading) + 15) & ~15UL };
    *library = (struct library_file){.needs_count = 0};
    struct reading* const reading = lend_from(work, lent);
    if (!reading)
        return library_unknown;
    const long file = kernel(SYS_openat, AT_FDCWD, (long)path, how, 0, 0, 0);
    enum reading_result result = is_nothing(file) ? no_library : library_unknown;
    if (file >= 0) {
        reading->work = work;
        reading->open.descriptor = file;
        reading->open.failed = false;
        result = read_open_file(reading, library);
        close_file(file);
    }
    give_back_to(work, lent);
    return result;
}
