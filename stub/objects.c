// SPDX-License-Identifier: Apache-2.0
#include "stub/objects.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>

#include "elf/object.h"
#include "stub/kernel.h"
#include "stub/text.h"

// One that the processor chooses isn't ours to call while the loader still relocates.
static void* look_up(const struct elf_object* in, const char* name) {
    const ElfW(Sym)* const symbol = elf_find_symbol(in, name, elf_gnu_hash(name));
    const bool is_fixed = symbol && ELF64_ST_TYPE(symbol->st_info) != STT_GNU_IFUNC;
    return is_fixed ? (void*)(in->base + symbol->st_value) : NULL;
}

struct function_search {
    const char* symbol;
    bool past_us;
    void *next, *any;
};

static int look_at(struct dl_phdr_info* object, size_t size, void* argument) {
    struct function_search* search = argument;
    (void)size;
    if (elf_holds(object, (const void*)&look_at)) {
        search->past_us = true;
        return 0;
    }
    const struct elf_object symbols = elf_object_of(object);
    void* found = look_up(&symbols, search->symbol);
    if (!search->any)
        search->any = found;
    if (search->past_us)
        search->next = found;
    return search->next != NULL;
}

dlopen_function find_next_dlopen(void) {
    static dlopen_function known;  // the same value whoever writes it
    dlopen_function next = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (next)
        return next;
    struct function_search search = {.symbol = "dlopen"};
    dl_iterate_phdr(look_at, &search);
    next = (dlopen_function)(search.next ? search.next : search.any);
    __atomic_store_n(&known, next, __ATOMIC_RELAXED);
    return next;
}

void* find_function(const char* symbol) {
    struct function_search search = {.symbol = symbol};
    dl_iterate_phdr(look_at, &search);
    return search.any;
}

static bool needs(const struct elf_object* object, const char* library) {
    if (!object->texts)
        return false;
    for (const ElfW(Dyn)* entry = object->dynamic; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag != DT_NEEDED)
            continue;
        if (begins_with(last_component(elf_object_text(object, entry)), library))
            return true;
    }
    return false;
}

struct exporter_search {
    const char *symbol, *needed;  // null: nobody has to need it
    const char* path;
    bool past_program, of_copy, is_needed;
};

static int look_for_exporter(struct dl_phdr_info* object, size_t size, void* argument) {
    struct exporter_search* search = argument;
    (void)size;
    const struct elf_object symbols = elf_object_of(object);
    const bool copy = look_up(&symbols, "cuslice_marker") != NULL;
    if (search->past_program && !search->path && look_up(&symbols, search->symbol)) {
        search->path = object->dlpi_name;
        search->of_copy = copy;
    }
    search->past_program = true;  // which comes first
    if (!search->needed)
        return search->path != NULL;
    search->is_needed |= !copy && needs(&symbols, search->needed);
    return 0;
}

const char* first_to_export(const char* symbol) {
    struct exporter_search search = {.symbol = symbol};
    dl_iterate_phdr(look_for_exporter, &search);
    return search.path;
}

const char* linked_to(const char* symbol, const char* needed) {
    struct exporter_search search = {.symbol = symbol, .needed = needed};
    dl_iterate_phdr(look_for_exporter, &search);
    return search.of_copy && !search.is_needed ? NULL : search.path;
}

struct c_library_search {
    const char* library;
    const char** paths;
    size_t most, count;
};

static int look_for_c_library(struct dl_phdr_info* object, size_t size, void* argument) {
    struct c_library_search* search = argument;
    (void)size;
    if (elf_holds(object, (const void*)&look_for_c_library) || equal(object->dlpi_name, search->library))
        return 1;
    const struct elf_object symbols = elf_object_of(object);
    const char* const soname = symbols.soname;
    if (soname && (equal(soname, "libc.so.6") || equal(soname, "libdl.so.2")) && search->count < search->most)
        search->paths[search->count++] = object->dlpi_name;
    return 0;
}

size_t list_c_libraries_before_stub(const char* library, const char** paths, size_t most) {
    struct c_library_search search = {library, paths, most, 0};
    dl_iterate_phdr(look_for_c_library, &search);
    return search.count;
}

struct names {
    const char** names;
    size_t count;
};

static int leave_out(struct dl_phdr_info* object, size_t size, void* argument) {
    const struct names* names = argument;
    const struct elf_object symbols = elf_object_of(object);
    const char* const soname = symbols.soname;
    (void)size;
    for (size_t i = 0; i < names->count; i++) {
        const char* const name = names->names[i];
        if (name && ((soname && equal(name, soname)) || (*object->dlpi_name && equal(name, object->dlpi_name))))
            names->names[i] = NULL;
    }
    return 0;
}

void leave_out_loaded(const char** names, size_t count) { dl_iterate_phdr(leave_out, &(struct names){names, count}); }

struct object_search {
    const void* address;
    struct wanting* object;
};

static int describe(struct dl_phdr_info* object, size_t size, void* argument) {
    const struct object_search* search = argument;
    const bool found = search->address && elf_holds(object, search->address);
    (void)size;
    if (!found && search->object->path)
        return 0;
    const struct elf_object symbols = elf_object_of(object);
    const char* const rpath = symbols.runpath ? NULL : symbols.rpath;
    *search->object = (struct wanting){.path = object->dlpi_name, .rpath = rpath, .runpath = symbols.runpath};
    return found;
}

void describe_object(const void* address, struct wanting* object) {
    *object = (struct wanting){.path = NULL};
    dl_iterate_phdr(describe, &(struct object_search){address, object});  // the program comes first
}

void* find_in(void* handle, const char* symbol) {
    const struct link_map* map = handle;  // which is what a handle is, in every glibc
    const struct elf_object symbols = elf_object_at(map->l_addr, map->l_ld);
    return look_up(&symbols, symbol);
}

struct copy_search {
    const void* address;
    bool in_copy;
};

static int look_at_copy(struct dl_phdr_info* object, size_t size, void* argument) {
    struct copy_search* search = argument;
    (void)size;
    if (!elf_holds(object, search->address))
        return 0;
    const struct elf_object symbols = elf_object_of(object);
    search->in_copy = look_up(&symbols, "cuslice_marker") != NULL;
    return 1;
}

bool lies_in_copy(const void* address) {
    struct copy_search search = {address, false};
    dl_iterate_phdr(look_at_copy, &search);
    return search.in_copy;
}

static int look_for_us(struct dl_phdr_info* object, size_t size, void* argument) {
    (void)size;
    if (!elf_holds(object, (const void*)&look_for_us))
        return 0;
    *(const char**)argument = object->dlpi_name;
    return 1;
}

const char* own_path(void) {
    const char* path = NULL;
    dl_iterate_phdr(look_for_us, &path);
    return path;
}

// As whoever opens it by the link's target, as the launcher does, has it under that name.
static size_t read_link(const char* link, char* to, size_t size) {
    const long length = kernel(SYS_readlinkat, AT_FDCWD, (long)link, (long)to, (long)size, 0, 0);
    return length > 0 && *to == '/' ? (size_t)length : 0;
}

bool library_path(char* path, size_t size) {
    static const char file[] = "libcuslice.so", linked[] = "library", linked_file[] = "library/libcuslice.so";
    const char* const own = own_path();
    if (!own || *own != '/')
        return false;
    const size_t folder = (size_t)(last_component(own) - own);
    if (folder + sizeof(linked_file) > size)
        return false;
    for (size_t i = 0; i < folder; i++)
        path[i] = own[i];
    *append(path + folder, file) = '\0';
    if (kernel(SYS_faccessat, AT_FDCWD, (long)path, 0 /* F_OK */, 0, 0, 0) == 0)
        return true;
    char target[1024];
    *append(path + folder, linked) = '\0';
    const size_t length = read_link(path, target, sizeof(target));
    if (length > 0 && length + sizeof(file) < size && length < sizeof(target)) {
        for (size_t i = 0; i < length; i++)
            path[i] = target[i];
        path[length] = '/';
        *append(path + length + 1, file) = '\0';
    } else {
        *append(path + folder, linked_file) = '\0';
    }
    return true;
}
