// SPDX-License-Identifier: Apache-2.0
#include "tests/preload/guest/refusals/host_memory.h"

#include <sys/mman.h>

#include <cerrno>

namespace {

thread_local bool none = false;

}  // namespace

namespace refusals {

NoHostMemory::NoHostMemory() { none = true; }
NoHostMemory::~NoHostMemory() { none = false; }

}  // namespace refusals

// A program's own functions stand before those of its libraries. The C library's other name for this one is not taken.
// A sanitizer's runtime has an mmap of its own there, and ends where another takes its place.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" [[gnu::visibility("default")]] void* mmap(void* address, size_t bytes, int protection, int flags, int file,
                                                     off_t offset) noexcept {
    if (!none)
        return mmap64(address, bytes, protection, flags, file, offset);
    errno = ENOMEM;
    return MAP_FAILED;
}
#endif
