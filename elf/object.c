// SPDX-License-Identifier: Apache-2.0
#include "elf/object.h"

#include <elf.h>

// The loader has added the base to these addresses, but not where it leaves the section as it is in the file (vDSO).
static const void* address_in(uintptr_t base, const ElfW(Dyn) * entry) {
    if (!entry)
        return NULL;
    const uintptr_t address = entry->d_un.d_ptr;
    return (const void*)(address < base ? base + address : address);
}

const char* elf_object_text(const struct elf_object* object, const ElfW(Dyn) * entry) {
    return object->texts && entry ? object->texts + entry->d_un.d_val : NULL;
}

struct elf_object elf_object_at(uintptr_t base, const ElfW(Dyn) * dynamic) {
    struct elf_object object = {.base = base, .dynamic = dynamic};
    const ElfW(Dyn) * by_tag[DT_NUM] = {0}, *gnu_hash = NULL, *versions = NULL;
    for (const ElfW(Dyn)* entry = dynamic; entry && entry->d_tag != DT_NULL; entry++) {
        if ((size_t)entry->d_tag < DT_NUM)
            by_tag[entry->d_tag] = entry;
        if (entry->d_tag == DT_GNU_HASH)
            gnu_hash = entry;
        if (entry->d_tag == DT_VERSYM)
            versions = entry;
    }
    object.symbols = address_in(base, by_tag[DT_SYMTAB]);
    object.texts = address_in(base, by_tag[DT_STRTAB]);
    object.hash = address_in(base, by_tag[DT_HASH]);
    object.gnu_hash = address_in(base, gnu_hash);
    object.versions = address_in(base, versions);
    object.soname = elf_object_text(&object, by_tag[DT_SONAME]);
    object.rpath = elf_object_text(&object, by_tag[DT_RPATH]);
    object.runpath = elf_object_text(&object, by_tag[DT_RUNPATH]);
    return object;
}

// The last dynamic section, as the loader has it.
struct elf_object elf_object_of(const struct dl_phdr_info* info) {
    const ElfW(Dyn)* dynamic = NULL;
    for (size_t i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn)*)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    return elf_object_at(info->dlpi_addr, dynamic);
}

bool elf_holds(const struct dl_phdr_info* info, const void* address) {
    const uintptr_t place = (uintptr_t)address - info->dlpi_addr;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr)* const segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && place - segment->p_vaddr < segment->p_memsz)
            return true;
    }
    return false;
}

static bool equal(const char* a, const char* b) {
    for (; *a == *b; a++, b++)
        if (!*a)
            return true;
    return false;
}

static bool exports(const struct elf_object* object, uint32_t index, const char* name) {
    const ElfW(Versym) hidden = 0x8000;  // an older version, which only those get who were linked to it
    const ElfW(Sym)* const symbol = &object->symbols[index];
    const unsigned char binding = ELF64_ST_BIND(symbol->st_info);
    if (symbol->st_shndx == SHN_UNDEF || (binding != STB_GLOBAL && binding != STB_WEAK))
        return false;
    if (object->versions && (object->versions[index] & hidden))
        return false;
    return equal(object->texts + symbol->st_name, name);
}

static const ElfW(Sym) * find_by_gnu_hash(const struct elf_object* object, const char* name, uint32_t hash) {
    const uint32_t* const table = object->gnu_hash;
    const uint32_t buckets = table[0], first = table[1], filter_words = table[2];
    const uint32_t* const bucket = table + 4 + filter_words * (sizeof(ElfW(Addr)) / sizeof(*table));
    const uint32_t* const chain = bucket + buckets;
    uint32_t index = buckets ? bucket[hash % buckets] : STN_UNDEF;
    if (index < first || index == STN_UNDEF)
        return NULL;
    for (;; index++) {
        const uint32_t entry = chain[index - first];
        if ((entry | 1) == (hash | 1) && exports(object, index, name))
            return &object->symbols[index];
        if (entry & 1)
            return NULL;  // the chain's last
    }
}

static uint32_t sysv_hash(const char* name) {
    uint32_t hash = 0;
    for (; *name; name++) {
        hash = (hash << 4) + (unsigned char)*name;
        const uint32_t top = hash & 0xf0000000;
        hash = (hash ^ (top >> 24)) & ~top;
    }
    return hash;
}

static const ElfW(Sym) * find_by_sysv_hash(const struct elf_object* object, const char* name) {
    const uint32_t buckets = object->hash[0];
    const uint32_t* const bucket = object->hash + 2;
    const uint32_t* const chain = bucket + buckets;
    uint32_t index = buckets ? bucket[sysv_hash(name) % buckets] : STN_UNDEF;
    for (; index != STN_UNDEF; index = chain[index])
        if (exports(object, index, name))
            return &object->symbols[index];
    return NULL;
}

const ElfW(Sym) * elf_find_symbol(const struct elf_object* object, const char* name, uint32_t gnu_hash) {
    if (!object->symbols || !object->texts)
        return NULL;
    if (object->gnu_hash)
        return find_by_gnu_hash(object, name, gnu_hash);
    return object->hash ? find_by_sysv_hash(object, name) : NULL;
}
