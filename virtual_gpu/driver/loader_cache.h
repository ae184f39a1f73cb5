// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

namespace cuslice {

// Looks a library name such as "libcuda.so.1" up in the dynamic loader's cache (ld.so.cache as written by ldconfig,
// format "glibc-ld.so.cache1.1", described in glibc's sysdeps/generic/dl-cache.h) and calls visit(path, argument) for
// each entry of this machine's kind, in the cache's order, until visit returns true. True if a visit did. A missing,
// torn or foreign cache has no entries. The cache has to be read because asking the loader by name would answer with
// ourselves.
bool for_each_in_loader_cache(const char* cache_path, const char* name, bool (*visit)(const char* path, void* argument),
                              void* argument);

inline constexpr const char* kLoaderCache = "/etc/ld.so.cache";

}  // namespace cuslice
