// SPDX-License-Identifier: Apache-2.0
// The dynamic loader's cache, ld.so.cache: where the loader finds most libraries. The format is ldconfig's
// (glibc, sysdeps/generic/dl-cache.h and sysdeps/generic/ldconfig.h).
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ELF_LOADER_CACHE "/etc/ld.so.cache"

enum { elf_largest_cache = 64 << 20 };  // bytes; none is that long

/// A cache in memory. Thread-safe: it is only read.
struct elf_cache {
    const char* bytes;  // of the table that glibc has written since 2.2; offsets of texts count from here
    size_t size;
    size_t count;
};

/// The cache in `size` bytes, which must outlive it; null for none. Without entries if the loader would not take it:
/// torn, foreign, or with more entries than it has room for.
struct elf_cache elf_open_cache(const void* bytes, size_t size);

/// The path of the next entry for a library of this name and of this machine, from entry *place on; *place moves past
/// it. Null if there is none. All entries of a name are given, also those for processors with more features: which one
/// the loader takes is the processor's to decide. Entries whose texts don't end in the cache are passed over.
const char* elf_next_in_cache(const struct elf_cache* cache, const char* name, size_t* place);

#ifdef __cplusplus
}
#endif
