// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

#include "elf/loader_cache.h"

namespace cuslice {

// The dynamic loader's cache as it was when it was read. It has to be read because asking the loader by name would
// answer with ourselves. A missing, torn or foreign cache has no entries. Not thread-safe.
class LoaderCache {
  public:
    explicit LoaderCache(const char* path);
    ~LoaderCache();
    LoaderCache(const LoaderCache&) = delete;
    LoaderCache& operator=(const LoaderCache&) = delete;

    // Calls visit(path) for each entry of a library of this name and of this machine's kind, in the cache's order,
    // until it returns true. True if a visit did.
    template <typename Visit>
    bool any(const char* name, Visit visit) const {
        size_t place = 0;
        while (const char* const path = elf_next_in_cache(&entries_, name, &place))
            if (visit(path))
                return true;
        return false;
    }

  private:
    void read(int file);

    void* bytes_ = nullptr;
    size_t size_ = 0;
    elf_cache entries_{};
};

}  // namespace cuslice
