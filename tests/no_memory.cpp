#include "tests/no_memory.h"

extern "C" {

void* __real_mmap(void* address, std::size_t bytes, int protection, int flags, int file, off_t offset);
void* __wrap_mmap(void* address, std::size_t bytes, int protection, int flags, int file, off_t offset);

void* __wrap_mmap(void* address, std::size_t bytes, int protection, int flags, int file, off_t offset) {
    if (!cuslice::tests::no_memory) return __real_mmap(address, bytes, protection, flags, file, offset);
    errno = ENOMEM;
    return MAP_FAILED;
}
}
