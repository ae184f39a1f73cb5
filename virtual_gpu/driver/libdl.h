// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <dlfcn.h>
#include <link.h>

namespace cuslice {

// dlsym and its kin, as the C library itself has them. They lie in libdl.so.2 before glibc 2.34 and in libc.so.6 since.
// Neither is linked to for them: a library that needs libdl.so.2 has every program map it, where it is empty now. Nor
// is another library's dlsym taken, which stands before the C library's (HAMi-core, profilers).
//
// Thread-safe, and their answers and errors are the C library's (dlsym(3), dlinfo(3)). Where it has none of them, each
// fails: a null pointer, 0 of dladdr and dladdr1, -1 of dlinfo and dlclose.
struct Libdl {
    static void* dlsym(void* handle, const char* name);
    static void* dlvsym(void* handle, const char* name, const char* version);
    static int dladdr(const void* address, Dl_info* info);
    static int dladdr1(const void* address, Dl_info* info, void** more, int flags);
    static int dlinfo(void* handle, int request, void* answer);
    static int dlclose(void* handle);
    static char* dlerror();

    // Before glibc 2.34: loads libdl.so.2 into a program that came without it. Does nothing where it is there.
    static void load();
};

}  // namespace cuslice
