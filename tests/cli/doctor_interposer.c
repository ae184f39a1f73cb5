// SPDX-License-Identifier: Apache-2.0
/* Preloaded, it stands before the driver: whoever looks cuMemAlloc_v2 up, or is linked to it, gets one that hands out
   handles of its own, behind which no driver has anything. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* The first that the C library has had for this processor. */
#if defined(__aarch64__)
#define VERSION "GLIBC_2.17"
#else
#define VERSION "GLIBC_2.2.5"
#endif

EXPORT int cuMemAlloc_v2(unsigned long long* handle, size_t bytes) {
    static unsigned long long next = 1;
    (void)bytes;
    *handle = next++;
    return 0;
}

EXPORT void* dlsym(void* library, const char* name) {
    void* (*real)(void*, const char*) = NULL;
    if (strcmp(name, "cuMemAlloc_v2") == 0)
        return (void*)&cuMemAlloc_v2;
    *(void**)&real = dlvsym(RTLD_NEXT, "dlsym", VERSION);
    return real(library, name);
}
