// SPDX-License-Identifier: Apache-2.0
/* Preloaded, it makes every file system one that has no locks; or one that does not answer, if a variable has it so. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((visibility("default"))) int fcntl(int file, int command, ...) {
    va_list more;
    va_start(more, command);
    void* const argument = va_arg(more, void*);
    va_end(more);
    if (command == F_OFD_SETLK || command == F_SETLK)
        return errno = ENOLCK, -1;
    return (int)syscall(SYS_fcntl, file, command, argument);
}

__attribute__((visibility("default"), alias("fcntl"))) int fcntl64(int file, int command, ...);

__attribute__((visibility("default"))) int statvfs(const char* path, struct statvfs* system) {
    if (getenv("STUB_FILES_HANG"))
        sleep(60);
    return (void)path, (void)system, errno = ENOSYS, -1;
}

__attribute__((visibility("default"), alias("statvfs"))) int statvfs64(const char* path, struct statvfs64* system);
