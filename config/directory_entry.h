// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace cuslice {

// As getdents64(2) writes it; readdir of the C library would take the host's malloc.
struct DirectoryEntry {
    uint64_t inode;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[1];
};

}  // namespace cuslice
