// SPDX-License-Identifier: Apache-2.0
/// Guards of slurmstepd, which is root: what it must not pass on to a user, and must not take over from one.
#pragma once
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

// A user's text as one line of a log: bytes that aren't printable ASCII, and backslashes, as \x1b.
static const char* printable(const char* text, char* line, size_t size) {
    size_t used = 0;
    for (; *text && used + 5 < size; text++) {
        const unsigned char byte = (unsigned char)*text;
        if (byte >= ' ' && byte < 0x7f && byte != '\\')
            line[used++] = *text;
        else
            used += (size_t)snprintf(line + used, size - used, "\\x%02x", byte);
    }
    line[used] = '\0';
    return line;
}

// As getdents64(2) writes it: between fork and exec, opendir could wait for a lock of malloc's for ever.
struct entry {
    uint64_t inode;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

// Closes all descriptors from `first` on, in a forked child: as many system calls as there are open ones, however many
// there may be.
static void close_from(int first) {
#ifdef SYS_close_range
    if (syscall(SYS_close_range, (unsigned)first, ~0u, 0) == 0)
        return;
#endif
    const int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        struct rlimit most;
        const bool known = getrlimit(RLIMIT_NOFILE, &most) == 0 && most.rlim_cur < 1 << 20;
        for (int descriptor = known ? (int)most.rlim_cur : 1 << 20; descriptor-- > first;)
            close(descriptor);
        return;
    }
    char entries[4096] __attribute__((aligned(8)));
    for (long size; (size = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0;) {
        for (long at = 0; at < size;) {
            const struct entry* const one = (const struct entry*)(entries + at);
            const int descriptor = (*one->name >= '0' && *one->name <= '9') ? atoi(one->name) : -1;
            if (descriptor >= first && descriptor != folder)
                close(descriptor);
            at += one->length;
        }
    }
    close(folder);
}
