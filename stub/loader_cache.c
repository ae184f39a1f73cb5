// SPDX-License-Identifier: Apache-2.0
#include "stub/loader_cache.h"

#include <sys/mman.h>

#include "stub/kernel.h"

// Read, and not mapped: it may become shorter while it is in use. All of it is zero where there is no more.
static void read_cache(struct loader_cache* cache) {
    cache->read = true;
    const long file = open_file(cache->path);
    long got = 0;
    const long size = file < 0 ? -1 : kernel(SYS_lseek, file, 0, 2 /* SEEK_END */, 0, 0, 0);
    if (size > 0 && size <= elf_largest_cache) {
        const long bytes = kernel(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (bytes > 0 || bytes < -4095) {
            cache->bytes = (void*)bytes;
            cache->size = (size_t)size;
            for (long more = 1; got < size && more > 0; got += more > 0 ? more : 0)
                more = kernel(SYS_pread64, file, bytes + got, size - got, got, 0, 0);
        }
    }
    cache->unknown = file < 0 ? !is_nothing(file) : got != size && size <= elf_largest_cache;
    if (file >= 0)
        close_file(file);
    cache->entries = elf_open_cache(cache->bytes, cache->size);
}

const char* next_in_cache(struct loader_cache* cache, const char* name, size_t* place) {
    if (!cache->read)
        read_cache(cache);
    return elf_next_in_cache(&cache->entries, name, place);
}

void forget_cache(struct loader_cache* cache) {
    if (cache->bytes)
        kernel(SYS_munmap, (long)cache->bytes, (long)cache->size, 0, 0, 0, 0);
}
