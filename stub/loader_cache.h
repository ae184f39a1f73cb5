// SPDX-License-Identifier: Apache-2.0
// The loader's cache, read for one search.
#pragma once

#include <stdbool.h>

#include "elf/loader_cache.h"

struct loader_cache {
    const char* path;
    void* bytes;
    size_t size;
    bool read, unknown;  // unknown: it is there, and could not be read
    struct elf_cache entries;
};

/// As elf_next_in_cache. Reads the file at the first call.
const char* next_in_cache(struct loader_cache* cache, const char* name, size_t* place);
void forget_cache(struct loader_cache* cache);
