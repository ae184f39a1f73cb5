// SPDX-License-Identifier: Apache-2.0
// Objects that the loader has mapped into this process, read from their own dynamic sections: dlsym is for whoever
// wants what the loader would give, and others may stand before it. Thread-safe; valid as long as the object stays
// loaded.
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define ELF_INLINE constexpr  // a table of hashes is the compiler's to make
extern "C" {
#else
#define ELF_INLINE static inline
#endif

struct elf_object {
    uintptr_t base;
    const ElfW(Dyn) * dynamic;  // null for an object without a dynamic section: it has no names
    const ElfW(Sym) * symbols;
    const char* texts;
    const uint32_t *gnu_hash, *hash;
    const ElfW(Versym) * versions;
    const char *soname, *rpath, *runpath;  // null if it has none
};

struct elf_object elf_object_at(uintptr_t base, const ElfW(Dyn) * dynamic);
struct elf_object elf_object_of(const struct dl_phdr_info* info);

/// True if the address lies in a segment that is loaded.
bool elf_holds(const struct dl_phdr_info* info, const void* address);

/// The text that an entry of the dynamic section names, as DT_NEEDED does; null if the object has no texts, or for no
/// entry.
const char* elf_object_text(const struct elf_object* object, const ElfW(Dyn) * entry);

/// The hash of a symbol's name in tables of the GNU kind.
ELF_INLINE uint32_t elf_gnu_hash(const char* name) {
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

/// The symbol that the object itself exports under this name, in its default version; null if there is none. Its
/// dependencies are not searched. `gnu_hash` is elf_gnu_hash() of the name.
const ElfW(Sym) * elf_find_symbol(const struct elf_object* object, const char* name, uint32_t gnu_hash);

#ifdef __cplusplus
}
#endif
