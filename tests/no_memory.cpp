// SPDX-License-Identifier: Apache-2.0
#include "tests/no_memory.h"

#include <cstddef>

extern "C" {

void* __real_mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset);
void* __wrap_mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset);

void* __wrap_mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
    if (!cuslice::tests::no_mappings)
        return __real_mmap(address, bytes, protection, flags, file, offset);
    errno = ENOMEM;
    return MAP_FAILED;
}

// cuslice::take_table_memory(size_t)
void* __real__ZN7cuslice17take_table_memoryEm(size_t bytes);
void* __wrap__ZN7cuslice17take_table_memoryEm(size_t bytes);

void* __wrap__ZN7cuslice17take_table_memoryEm(size_t bytes) {
    return cuslice::tests::no_tables ? nullptr : __real__ZN7cuslice17take_table_memoryEm(bytes);
}
}
