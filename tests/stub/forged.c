// SPDX-License-Identifier: Apache-2.0
// Libraries that somebody preloads to be passed over by the stub. Which one is said by what it is built with.
#define _GNU_SOURCE
#include <dlfcn.h>

#pragma GCC visibility push(default)

#if FORGED_BETWEEN
// No forgery: what sanitizers and profilers do.
void* dlopen(const char* name, int flags) {
    void* (*next)(const char*, int);
    *(void**)&next = dlsym(RTLD_NEXT, "dlopen");
    return next(name, flags);
}
#else
const char* cuslice_marker(void);
const char* cuslice_marker(void) { return "cuslice"; }
#endif

#if FORGED_ENTRANCE
void* cuslice_enter_1(void* next);
void* cuslice_enter_1(void* next) { return next; }
#endif

#if FORGED_START
int cuInit(unsigned flags);
int cuInit(unsigned flags) {
    int (*next)(unsigned);
    *(void**)&next = dlsym(RTLD_NEXT, "cuInit");
    return next ? next(flags) : 999;
}
#endif
