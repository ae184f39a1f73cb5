// SPDX-License-Identifier: Apache-2.0
// Working memory: a piece of the kernel's, which is given back as a whole.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include "stub/kernel.h"

struct work {
    char *start, *next, *end;
};

/// Pages that nobody writes to cost nothing. False if there is none: the work is empty then.
static inline bool take_work(struct work* work, size_t size) {
    const long start = kernel(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const bool taken = start > 0 || start < -4095;
    work->start = work->next = taken ? (char*)start : NULL;
    work->end = taken ? work->start + size : NULL;
    return taken;
}
static inline void give_back_work(struct work* work) {
    if (work->start)
        kernel(SYS_munmap, (long)work->start, work->end - work->start, 0, 0, 0, 0);
}

static inline size_t left_in(const struct work* work) { return (size_t)(work->end - work->next); }

/// For anything; null where that is more than there is left. Whoever puts `next` back gives all back that came after.
static inline void* take_from(struct work* work, size_t size) {
    char* const aligned = (char*)(((uintptr_t)work->next + 15) & ~(uintptr_t)15);
    if (aligned > work->end || size > (size_t)(work->end - aligned))
        return NULL;
    work->next = aligned + size;
    return aligned;
}

/// From the other end, for a multiple of 16 bytes that is given back before anything else is.
static inline void* lend_from(struct work* work, size_t size) {
    return left_in(work) < size ? NULL : (work->end -= size);
}
static inline void give_back_to(struct work* work, size_t size) { work->end += size; }
