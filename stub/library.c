// SPDX-License-Identifier: Apache-2.0
#include "stub/library.h"

#include <elf.h>
#include <errno.h>
#include <poll.h>
#include <sys/stat.h>

#include "elf/file.h"
#include "stub/kernel.h"
#include "stub/text.h"

const char* library_fault(const char* path) {
    Elf64_Ehdr header;
    const long file = open_file(path);
    if (file == -ENOENT || file == -ENOTDIR)
        return "is not there";
    if (file < 0)
        return "cannot be read";
    const long got = read_file(file, &header, sizeof(header));
    const long size = kernel(SYS_lseek, file, 0, 2 /* SEEK_END */, 0, 0, 0);
    close_file(file);
    if (got != sizeof(header) || !elf_is_native(&header))
        return "is no library for this machine";
    const Elf64_Off end = header.e_shoff + (Elf64_Off)header.e_shnum * header.e_shentsize;  // sections come last
    return size < 0 || (Elf64_Off)size < end ? "is not whole" : NULL;
}

// A program that closes descriptor 2 may get the number for a file of its own. It is taken for stderr if it looks like
// a redirection: a terminal, a pipe, or a file opened with O_APPEND, and not close-on-exec.
static bool is_stderr(void) {
    struct stat about;
    if (kernel(SYS_fstat, 2, (long)&about, 0, 0, 0, 0) != 0)
        return false;
    const long flags = kernel(SYS_fcntl, 2, F_GETFL, 0, 0, 0, 0);
    if (kernel(SYS_fcntl, 2, F_GETFD, 0, 0, 0, 0) & FD_CLOEXEC)
        return false;
    if (S_ISREG(about.st_mode))
        return flags >= 0 && (flags & O_APPEND);
    return S_ISFIFO(about.st_mode) || S_ISCHR(about.st_mode);
}

// Neither waits nor ends the program: the signals of a write are held back, and one that it caused is taken away.
static void write_line(const char* text, size_t size) {
    enum { pipe_broken = 1UL << 12, terminal_stopped = 1UL << 21, file_too_large = 1UL << 24 };
    unsigned long held = pipe_broken | terminal_stopped | file_too_large, before = 0, waiting = 0;
    struct pollfd wait = {2, POLLOUT, 0};
    const struct { long seconds, nanoseconds; } none = {0, 0};
    if (kernel(SYS_ppoll, (long)&wait, 1, (long)&none, 0, 0, 0) != 1 || !(wait.revents & POLLOUT))
        return;
    kernel(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, (long)&held, (long)&before, sizeof(held), 0, 0);
    kernel(SYS_rt_sigpending, (long)&waiting, sizeof(waiting), 0, 0, 0, 0);
    kernel(SYS_write, 2, (long)text, (long)size, 0, 0, 0);
    held &= ~waiting;
    kernel(SYS_rt_sigtimedwait, (long)&held, 0, (long)&none, sizeof(held), 0, 0);
    kernel(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, (long)&before, 0, sizeof(held), 0, 0);
}

void say_refused(const char* library, const char* why, const char* so, bool sure) {
    static bool said;
    static const char before[] = "cuslice: ", between[] = ", so ";
    char line[1024];
    if (__atomic_exchange_n(&said, true, __ATOMIC_RELAXED) || (!sure && !is_stderr()))
        return;
    const size_t size = sizeof(before) + sizeof(between) + length_of(library) + length_of(why) + length_of(so) + 2;
    if (size >= sizeof(line))
        library = "libcuslice.so";
    char* end = append(append(append(line, before), library), " ");
    end = append(append(append(append(end, why), between), so), "\n");
    write_line(line, (size_t)(end - line));
}
