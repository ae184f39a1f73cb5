// SPDX-License-Identifier: Apache-2.0
#include "elf/loader_cache.h"

#include <stdbool.h>
#include <stdint.h>

// FLAG_X8664_LIB64 or FLAG_AARCH64_LIB64, and FLAG_ELF_LIBC6.
#if defined(__x86_64__)
enum { own_flags = 0x0303 };
#elif defined(__aarch64__)
enum { own_flags = 0x0a03 };
#endif

// An older table may stand before the newer one.
static const char old_magic[] = "ld.so-1.7.0", magic[] = "glibc-ld.so.cache1.1";
struct old_header {
    char magic[12];
    uint32_t count;
};
enum { old_entry_size = 12, alignment = 8 };
struct header {
    char magic[20];
    uint32_t count, others[6];
};
struct entry {
    int32_t flags;
    uint32_t key, value, os_version;
    uint64_t features;
};
_Static_assert(sizeof(struct old_header) == 16 && sizeof(struct header) == 48 && sizeof(struct entry) == 24,
               "as ldconfig writes them");

static bool begins_with(const char* bytes, const char* text) {
    while (*text)
        if (*bytes++ != *text++)
            return false;
    return true;
}

// True if the text at `at` is `name` and ends in the cache.
static bool names(const struct elf_cache* cache, size_t at, const char* name) {
    for (; at < cache->size && cache->bytes[at] == *name; at++, name++)
        if (!*name)
            return true;
    return false;
}

static bool ends(const struct elf_cache* cache, size_t at) {
    while (at < cache->size && cache->bytes[at])
        at++;
    return at < cache->size;
}

// Bytes of the older table with what fills it up; 0 if there is none.
static size_t size_of_old_table(const char* bytes, size_t size) {
    struct old_header header;
    if (size < sizeof(header) || !begins_with(bytes, old_magic))
        return 0;
    __builtin_memcpy(&header, bytes, sizeof(header));
    return (sizeof(header) + (size_t)header.count * old_entry_size + alignment - 1) & ~(size_t)(alignment - 1);
}

struct elf_cache elf_open_cache(const void* bytes, size_t size) {
    struct elf_cache cache = {0};
    struct header header;
    const size_t skipped = size_of_old_table(bytes, size);
    if (skipped > size || size - skipped < sizeof(header))
        return cache;
    const char* const table = (const char*)bytes + skipped;
    if (!begins_with(table, magic))
        return cache;
    __builtin_memcpy(&header, table, sizeof(header));
    if (header.count > (size - skipped - sizeof(header)) / sizeof(struct entry))
        return cache;
    cache.bytes = table;
    cache.size = size - skipped;
    cache.count = header.count;
    return cache;
}

const char* elf_next_in_cache(const struct elf_cache* cache, const char* name, size_t* place) {
    while (*place < cache->count) {
        struct entry entry;
        __builtin_memcpy(&entry, cache->bytes + sizeof(struct header) + *place * sizeof(entry), sizeof(entry));
        ++*place;
        if (entry.flags == own_flags && names(cache, entry.key, name) && ends(cache, entry.value))
            return cache->bytes + entry.value;
    }
    return NULL;
}
