// SPDX-License-Identifier: Apache-2.0
// Shared by all probes: a call into the library under test, linked or found with dlsym, and a line with its status.
//
//   PROBE_LIBRARY   the SONAME, as a program would open it
//   PROBE_LINKED    the library is needed by the program, and its functions are called by name
//
// Without NVIDIA's headers, which would have to fit the library's version: a status is an int in all of them.
#pragma once

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef PROBE_LINKED
#define DECLARE(type, name, ...) type name(__VA_ARGS__)
#define CALL(name, ...) name(__VA_ARGS__)
#else
static inline void* find(const char* name) {
    static void* library;
    if (library == NULL)
        library = dlopen(PROBE_LIBRARY, RTLD_NOW);
    if (library == NULL) {
        printf("dlopen: %s\n", dlerror());
        exit(1);
    }
    void* function = dlsym(library, name);
    if (function == NULL) {
        printf("there is no %s\n", name);
        exit(1);
    }
    return function;
}
#define DECLARE(type, name, ...) typedef type name##_function(__VA_ARGS__)
#define CALL(name, ...) ((name##_function*)find(#name))(__VA_ARGS__)
#endif

// Flushed at once: what a program that hangs has got to is then known.
#define SHOW(name, ...)                              \
    do {                                             \
        const int status_ = CALL(name, __VA_ARGS__); \
        printf("%s %d\n", #name, status_);           \
        fflush(stdout);                              \
    } while (0)
