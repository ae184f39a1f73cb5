// SPDX-License-Identifier: Apache-2.0
// Where the loader looks for a library, in its order.
#pragma once

#include <dlfcn.h>

#include "stub/loader_cache.h"
#include "stub/objects.h"
#include "stub/work.h"

struct search {
    struct work* work;
    dlopen_function dlopen;
    struct wanting program, caller;
    struct loader_cache cache;
    const Dl_serpath* folders;  // of LD_LIBRARY_PATH, then the loader's own
    size_t folder_count, own_from;
    bool prepared;
    bool unknown;  // a path could not be told that the loader may know
};

/// `caller`: an address in the code that opens something.
void begin_search(struct search* search, struct work* work, const void* caller, dlopen_function dlopen);
void end_search(struct search* search);

/// A library to look for, the object that wants it, and the function that takes each path that it could have. `take`
/// returns false where there is no library for this machine; the text of the path is gone then.
struct wish {
    const char* name;
    const struct wanting* by;
    bool (*take)(void* argument, const char* path, const struct wanting* by);
    void* argument;
};

/// Hands out the paths that the loader would try, one after the other, until one is taken; false if none is. From the
/// loader's cache all entries of the name are handed out, as which of them counts depends on the processor. What is
/// left out: the subfolders of glibc-hwcaps, and folders with $LIB or $PLATFORM in them.
bool search_library(struct search* search, const struct wish* wish);
