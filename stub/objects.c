// SPDX-License-Identifier: Apache-2.0
#include "stub/objects.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>

#include "stub/kernel.h"
#include "stub/text.h"

// An object's own symbol table.
struct symbols {
    const ElfW(Sym) * table;
    const char* strings;
    const uint32_t* gnu_hash;
    const uint32_t* hash;
    const ElfW(Versym) * versions;
    uintptr_t base;
    const ElfW(Dyn) * soname, *rpath, *runpath;  // offsets of their strings
};

// The loader has added the base to these addresses, but not where it leaves the section as it is in the file (vDSO).
static const void* at(uintptr_t base, uintptr_t address) {
    return (const void*)(address < base ? base + address : address);
}

static struct symbols symbols_of(uintptr_t base, const ElfW(Dyn) * entry) {
    struct symbols found = {.base = base};
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        const void* target = at(base, entry->d_un.d_ptr);
        switch (entry->d_tag) {
            case DT_SYMTAB:
                found.table = target;
                break;
            case DT_STRTAB:
                found.strings = target;
                break;
            case DT_GNU_HASH:
                found.gnu_hash = target;
                break;
            case DT_HASH:
                found.hash = target;
                break;
            case DT_VERSYM:
                found.versions = target;
                break;
            case DT_SONAME:
                found.soname = entry;
                break;
            case DT_RPATH:
                found.rpath = entry;
                break;
            case DT_RUNPATH:
                found.runpath = entry;
                break;
            default:
                break;
        }
    }
    return found;
}

static bool exports(const struct symbols* in, uint32_t index, const char* symbol) {
    const ElfW(Versym) hidden = 0x8000;  // an older version, which only those get who were linked to it
    const ElfW(Sym)* entry = &in->table[index];
    const unsigned char binding = ELF64_ST_BIND(entry->st_info);
    return entry->st_shndx != SHN_UNDEF && (binding == STB_GLOBAL || binding == STB_WEAK) &&
           ELF64_ST_TYPE(entry->st_info) != STT_GNU_IFUNC && !(in->versions && (in->versions[index] & hidden)) &&
           equal(in->strings + entry->st_name, symbol);
}

static void* look_up_gnu(const struct symbols* in, const char* symbol) {
    uint32_t hash = 5381;
    for (const char* c = symbol; *c; c++) hash = hash * 33 + (unsigned char)*c;
    const uint32_t buckets = in->gnu_hash[0], first = in->gnu_hash[1], filter_words = in->gnu_hash[2];
    const uint32_t* bucket = in->gnu_hash + 4 + filter_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t* chain = bucket + buckets;
    uint32_t index = buckets ? bucket[hash % buckets] : 0;
    if (index < first || index == 0) return NULL;
    for (;; index++) {
        const uint32_t entry = chain[index - first];
        if ((entry | 1) == (hash | 1) && exports(in, index, symbol))
            return (void*)(in->base + in->table[index].st_value);
        if (entry & 1) return NULL;  // the chain's last
    }
}

static void* look_up(const struct symbols* in, const char* symbol) {
    if (!in->table || !in->strings) return NULL;
    if (in->gnu_hash) return look_up_gnu(in, symbol);
    for (uint32_t index = 1; in->hash && index < in->hash[1]; index++)
        if (exports(in, index, symbol)) return (void*)(in->base + in->table[index].st_value);
    return NULL;
}

static bool holds(const struct dl_phdr_info* object, const void* address) {
    const uintptr_t place = (uintptr_t)address - object->dlpi_addr;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_LOAD &&
            place - object->dlpi_phdr[i].p_vaddr < object->dlpi_phdr[i].p_memsz)
            return true;
    return false;
}

static const ElfW(Dyn) * dynamic_of(const struct dl_phdr_info* object) {
    const ElfW(Dyn)* dynamic = NULL;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn)*)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    return dynamic;
}

static struct symbols symbols_of_object(const struct dl_phdr_info* object) {
    return symbols_of(object->dlpi_addr, dynamic_of(object));
}

static const char* text_of(const struct symbols* in, const ElfW(Dyn) * entry) {
    return entry && in->strings ? in->strings + entry->d_un.d_val : NULL;
}

struct function_search {
    const char* symbol;
    bool past_us;
    void *next, *any;
};

static int look_at(struct dl_phdr_info* object, size_t size, void* argument) {
    struct function_search* search = argument;
    (void)size;
    if (holds(object, (const void*)&look_at)) {
        search->past_us = true;
        return 0;
    }
    const struct symbols symbols = symbols_of_object(object);
    void* found = look_up(&symbols, search->symbol);
    if (!search->any) search->any = found;
    if (search->past_us) search->next = found;
    return search->next != NULL;
}

dlopen_function find_next_dlopen(void) {
    static dlopen_function known;  // the same value whoever writes it
    dlopen_function next = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (next) return next;
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

static bool needs(const struct dl_phdr_info* object, const struct symbols* symbols, const char* library) {
    for (const ElfW(Dyn)* entry = dynamic_of(object); entry && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_NEEDED && begins_with(last_component(text_of(symbols, entry)), library)) return true;
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
    const struct symbols symbols = symbols_of_object(object);
    const bool copy = look_up(&symbols, "cuslice_marker") != NULL;
    if (search->past_program && !search->path && look_up(&symbols, search->symbol)) {
        search->path = object->dlpi_name;
        search->of_copy = copy;
    }
    search->past_program = true;  // which comes first
    if (!search->needed) return search->path != NULL;
    search->is_needed |= !copy && symbols.strings && needs(object, &symbols, search->needed);
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
    if (holds(object, (const void*)&look_for_c_library) || equal(object->dlpi_name, search->library)) return 1;
    const struct symbols symbols = symbols_of_object(object);
    const char* const soname = text_of(&symbols, symbols.soname);
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
    const struct symbols symbols = symbols_of_object(object);
    const char* const soname = text_of(&symbols, symbols.soname);
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
    const bool found = search->address && holds(object, search->address);
    (void)size;
    if (!found && search->object->path) return 0;
    const struct symbols symbols = symbols_of_object(object);
    const char* const runpath = text_of(&symbols, symbols.runpath);
    *search->object = (struct wanting){
        .path = object->dlpi_name, .rpath = runpath ? NULL : text_of(&symbols, symbols.rpath), .runpath = runpath};
    return found;
}

void describe_object(const void* address, struct wanting* object) {
    *object = (struct wanting){.path = NULL};
    dl_iterate_phdr(describe, &(struct object_search){address, object});  // the program comes first
}

void* find_in(void* handle, const char* symbol) {
    const struct link_map* map = handle;  // which is what a handle is, in every glibc
    const struct symbols symbols = symbols_of(map->l_addr, map->l_ld);
    return look_up(&symbols, symbol);
}

struct copy_search {
    const void* address;
    bool in_copy;
};

static int look_at_copy(struct dl_phdr_info* object, size_t size, void* argument) {
    struct copy_search* search = argument;
    (void)size;
    if (!holds(object, search->address)) return 0;
    const struct symbols symbols = symbols_of_object(object);
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
    if (!holds(object, (const void*)&look_for_us)) return 0;
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
    if (!own || *own != '/') return false;
    const size_t folder = (size_t)(last_component(own) - own);
    if (folder + sizeof(linked_file) > size) return false;
    for (size_t i = 0; i < folder; i++) path[i] = own[i];
    *append(path + folder, file) = '\0';
    if (kernel(SYS_faccessat, AT_FDCWD, (long)path, 0 /* F_OK */, 0, 0, 0) == 0) return true;
    char target[1024];
    *append(path + folder, linked) = '\0';
    const size_t length = read_link(path, target, sizeof(target));
    if (length > 0 && length + sizeof(file) < size && length < sizeof(target)) {
        for (size_t i = 0; i < length; i++) path[i] = target[i];
        path[length] = '/';
        *append(path + length + 1, file) = '\0';
    } else {
        *append(path + folder, linked_file) = '\0';
    }
    return true;
}
