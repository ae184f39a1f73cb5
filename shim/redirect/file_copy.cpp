// SPDX-License-Identifier: Apache-2.0
#include "shim/redirect/file_copy.h"

#include <sys/mman.h>
#include <unistd.h>

namespace cuslice {

namespace {

// No program's tables take as much, with debug information of everything.
constexpr uint64_t kMostBytes = uint64_t{1} << 30;

}  // namespace

FileCopy::~FileCopy() { remove(); }

void FileCopy::remove() {
    if (bytes_)
        munmap(data_, bytes_);
    data_ = nullptr;
    bytes_ = 0;
}

bool FileCopy::read(int file, uint64_t offset, uint64_t bytes) {
    remove();
    if (bytes > kMostBytes)
        return false;
    void* const memory = mmap(nullptr, bytes + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    data_ = memory;
    bytes_ = bytes + 1;
    bool failed = false;
    return read_at(file, offset, memory, bytes, &failed) == bytes;
}

size_t read_at(int file, uint64_t offset, void* into, size_t size, bool* failed) {
    size_t done = 0;
    while (done < size) {
        const auto at = static_cast<off_t>(offset + done);
        const ssize_t got = pread(file, static_cast<char*>(into) + done, size - done, at);
        *failed |= got < 0;
        if (got <= 0)
            break;
        done += static_cast<size_t>(got);
    }
    return done;
}

}  // namespace cuslice
