// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/driver/loader_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include "virtual_gpu/driver/scratch.h"

namespace cuslice {

LoaderCache::LoaderCache(const char* path) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    read(file);
    close(file);
    entries_ = elf_open_cache(bytes_, size_);
}

LoaderCache::~LoaderCache() { give_back_scratch(bytes_, size_); }

// Read, and not mapped: it may become shorter while it is in use. All of it is zero where there is no more.
void LoaderCache::read(int file) {
    const off_t length = lseek(file, 0, SEEK_END);  // not fstat: its symbol is newer than the C libraries we run on
    if (length <= 0 || length > elf_largest_cache)
        return;
    bytes_ = take_scratch(static_cast<size_t>(length));
    if (!bytes_)
        return;
    size_ = static_cast<size_t>(length);
    size_t got = 0;
    while (got < size_) {
        const ssize_t more = pread(file, static_cast<char*>(bytes_) + got, size_ - got, static_cast<off_t>(got));
        if (more <= 0)
            break;
        got += static_cast<size_t>(more);
    }
}

}  // namespace cuslice
