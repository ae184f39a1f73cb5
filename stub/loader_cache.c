// SPDX-License-Identifier: Apache-2.0
#include "stub/loader_cache.h"

#include <stdint.h>
#include <sys/mman.h>

#include "stub/kernel.h"
#include "stub/text.h"

#if defined(__x86_64__)
enum { wanted_flags = 0x0303 };  // 64 bits, the C library 6
#else
enum { wanted_flags = 0x0a03 };
#endif

// glibc's formats: an older table may stand before the new one. Offsets of texts are from the new header on.
struct old_header {
    char magic[12];
    uint32_t count;
};
enum { old_entry_size = 12, largest_cache = 64 << 20 };
struct header {
    char magic[20];
    uint32_t count, others[6];
};
struct entry {
    int32_t flags;
    uint32_t key, value, os_version;
    uint64_t features;
};
_Static_assert(sizeof(struct old_header) == 16 && sizeof(struct header) == 48 && sizeof(struct entry) == 24, "");

// Read, and not mapped: it may become shorter while it is in use. All of it is zero where there is no more.
static void read_cache(struct loader_cache* cache) {
    cache->read = true;
    const long file = open_file(cache->path);
    const long size = file < 0 ? -1 : kernel(SYS_lseek, file, 0, 2 /* SEEK_END */, 0, 0, 0);
    if (size > 0 && size <= largest_cache) {
        // One byte more than the file has, so that every text ends.
        const long bytes = kernel(SYS_mmap, 0, size + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (bytes > 0 || bytes < -4095) {
            cache->bytes = (char*)bytes;
            cache->size = (size_t)size;
            for (long got = 0, more = 1; got < size && more > 0; got += more > 0 ? more : 0)
                more = kernel(SYS_pread64, file, bytes + got, size - got, got, 0, 0);
        }
    }
    if (file >= 0) close_file(file);
}

const char* next_in_cache(struct loader_cache* cache, const char* name, size_t* place) {
    if (!cache->read) read_cache(cache);
    const char* bytes = cache->bytes;
    size_t size = cache->size;
    if (size >= sizeof(struct old_header) && begins_with(bytes, "ld.so-1.7.0")) {
        const struct old_header* old = (const struct old_header*)bytes;
        const size_t skipped = (sizeof(*old) + (size_t)old->count * old_entry_size + 7) & ~(size_t)7;
        if (skipped >= size) return NULL;
        bytes += skipped;
        size -= skipped;
    }
    if (size < sizeof(struct header) || !begins_with(bytes, "glibc-ld.so.cache1.1")) return NULL;
    const struct header* header = (const struct header*)bytes;
    const struct entry* entries = (const struct entry*)(header + 1);
    for (; *place < header->count && *place < (size - sizeof(*header)) / sizeof(*entries); ++*place) {
        const struct entry* entry = &entries[*place];
        if (entry->flags != wanted_flags || entry->key >= size || entry->value >= size) continue;
        if (!equal(bytes + entry->key, name)) continue;
        ++*place;
        return bytes + entry->value;
    }
    return NULL;
}

void forget_cache(struct loader_cache* cache) {
    if (cache->bytes) kernel(SYS_munmap, (long)cache->bytes, (long)cache->size + 1, 0, 0, 0, 0);
}
