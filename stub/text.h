// SPDX-License-Identifier: Apache-2.0
// The few functions on strings that the stub needs, as it calls none of the C library's.
#pragma once

#include <stdbool.h>
#include <stddef.h>

static inline size_t length_of(const char* text) {
    size_t length = 0;
    while (text[length])
        length++;
    return length;
}

static inline bool begins_with(const char* text, const char* start) {
    while (*start)
        if (*text++ != *start++)
            return false;
    return true;
}

static inline bool equal(const char* a, const char* b) { return begins_with(a, b) && length_of(a) == length_of(b); }

/// Copies without the terminating zero; returns where the copy ends.
static inline char* append(char* to, const char* text) {
    while (*text)
        *to++ = *text++;
    return to;
}

static inline const char* last_component(const char* path) {
    const char* name = path;
    for (; *path; path++)
        if (*path == '/')
            name = path + 1;
    return name;
}
