// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/syscall.h>
#include <unistd.h>

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

/// Calls `visit(entry)` for each entry of an open folder until it returns false. `buffer`: for so many at a time,
/// aligned as an entry is.
template <size_t kBytes, typename Visit>
void for_each_entry(int folder, char (&buffer)[kBytes], const Visit& visit) {
    for (long count; (count = syscall(SYS_getdents64, folder, buffer, kBytes)) > 0;)
        for (long at = 0; at < count;) {
            const auto& entry = *reinterpret_cast<const DirectoryEntry*>(buffer + at);
            at += entry.length;
            if (!visit(entry))
                return;
        }
}

}  // namespace cuslice
