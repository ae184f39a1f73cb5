// SPDX-License-Identifier: Apache-2.0
// System calls without the C library: while the loader still relocates, nothing of it may be called, and a stub that
// needs little of it starts on any.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>

/// The kernel's answer: a negative error number where it fails. errno is not touched.
static inline long kernel(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long answer;
    __asm__ volatile("syscall"
                     : "=a"(answer)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return answer;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
#endif
}

/// True for an error of a path that leads to no file that this process may read: the loader finds none there either.
static inline bool is_nothing(long error) {
    return error == -ENOENT || error == -ENOTDIR || error == -EACCES || error == -ELOOP || error == -ENAMETOOLONG;
}

static inline long open_file(const char* path) {
    return kernel(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
}
static inline void close_file(long descriptor) { kernel(SYS_close, descriptor, 0, 0, 0, 0, 0); }
static inline long read_file(long descriptor, void* to, size_t size) {
    return kernel(SYS_read, descriptor, (long)to, (long)size, 0, 0, 0);
}
