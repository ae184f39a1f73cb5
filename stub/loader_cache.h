// SPDX-License-Identifier: Apache-2.0
// The loader's cache: where the loader finds most libraries.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct loader_cache {
    const char* path;
    char* bytes;
    size_t size;
    bool read;
};

/// The path of the next entry for a library of this name and this machine, from entry number *place on, which is moved
/// past it; null if there is none. Reads the file at the first call.
const char* next_in_cache(struct loader_cache* cache, const char* name, size_t* place);
void forget_cache(struct loader_cache* cache);
