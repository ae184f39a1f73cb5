// SPDX-License-Identifier: Apache-2.0
#pragma once
// dlopen, dlsym and their kin live in libdl.so.2 before glibc 2.34 and in libc.so.6 since, under a new version. We ask
// for the old version, which every C library from 2.17 on has, so that a library built today can be preloaded anywhere.
#include <dlfcn.h>
#include <link.h>

#if defined(__aarch64__) && defined(__linux__) && !defined(CUSLICE_ANY_GLIBC)
__asm__(".symver dlsym, dlsym@GLIBC_2.17");
__asm__(".symver dlvsym, dlvsym@GLIBC_2.17");
__asm__(".symver dladdr, dladdr@GLIBC_2.17");
__asm__(".symver dlclose, dlclose@GLIBC_2.17");
__asm__(".symver dlerror, dlerror@GLIBC_2.17");
__asm__(".symver dlinfo, dlinfo@GLIBC_2.17");
__asm__(".symver dladdr1, dladdr1@GLIBC_2.17");
#elif defined(__x86_64__) && defined(__linux__) && !defined(CUSLICE_ANY_GLIBC)
__asm__(".symver dlsym, dlsym@GLIBC_2.2.5");
__asm__(".symver dlvsym, dlvsym@GLIBC_2.2.5");
__asm__(".symver dladdr, dladdr@GLIBC_2.2.5");
__asm__(".symver dlclose, dlclose@GLIBC_2.2.5");
__asm__(".symver dlerror, dlerror@GLIBC_2.2.5");
__asm__(".symver dlinfo, dlinfo@GLIBC_2.3.3");
__asm__(".symver dladdr1, dladdr1@GLIBC_2.3.3");
#endif
