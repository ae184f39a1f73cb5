// SPDX-License-Identifier: Apache-2.0
// Programs that open the driver while they run. Nothing happens before they do.
#include <dlfcn.h>

#include "stub/library.h"
#include "stub/look_ahead.h"
#include "stub/names.h"

// Where dlopen goes on, and with which name: for the assembly, which returns both in registers.
struct destination {
    dlopen_function to;
    const char* name;
};
struct destination cuslice_stub_destination(const char* name, int flags, const void* caller);

// For a library that was preloaded otherwise, as by cuslice run. Anybody can preload a library with such a mark.
__attribute__((weak, visibility("default"))) const char* cuslice_marker(void);

typedef dlopen_function (*entrance)(dlopen_function);

static dlopen_function entered;  // the library's own dlopen, once it is in

// True for the name that the launcher opens, in vain, to see the driver as it is. A program could open it too, as it
// could do much else.
static bool wants_none(const char* name) { return equal(name, "/proc/cuslice launcher"); }

// Null, with the reason said, where the library can't be had. Two threads may do this at once.
static dlopen_function enter(dlopen_function next) {
    char path[1024] = "libcuslice.so";
    const char* why = library_path(path, sizeof(path)) ? library_fault(path) : "has no path";
    void* library = why ? NULL : next(path, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
    if (!library && !why)
        why = "cannot be loaded";
    const entrance enter_library = library ? (entrance)find_in(library, CUSLICE_ENTRANCE_NAME) : NULL;
    if (!enter_library) {
        say_refused(path, why ? why : "is older than libcuslice-preload.so", SO_NO_CUDA, false);
        return NULL;
    }
    const dlopen_function own = enter_library(next);
    __atomic_store_n(&entered, own, __ATOMIC_RELEASE);
    return own;
}

// The loader knows a file that it has loaded by its inode, under whichever name.
static bool is_preloaded(dlopen_function next) {
    char path[1024];
    void* const library = library_path(path, sizeof(path)) ? next(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    return library && find_in(library, "cuslice_marker") == (void*)cuslice_marker;
}

// A library that libcuslice.so opens itself is its own affair, also where it is another installation's.
static bool is_of_library(const void* caller, dlopen_function next) {
    if (!cuslice_marker)
        return false;
    static bool preloaded;  // the same value whoever writes it
    if (!__atomic_load_n(&preloaded, __ATOMIC_RELAXED) && is_preloaded(next))
        __atomic_store_n(&preloaded, true, __ATOMIC_RELAXED);
    return __atomic_load_n(&preloaded, __ATOMIC_RELAXED) || lies_in_copy(caller);
}

// Paths that are never there, whose text the program finds in dlerror().
static const char refused_driver[] = "/proc/cuslice refuses CUDA to this program: libcuda.so.1";
static const char refused_library[] =
    "/proc/cuslice refuses CUDA to this program, and the library that it opens needs libcuda.so.1";
static const char refused_unread[] =
    "/proc/cuslice refuses CUDA to this program, and the library that it opens could not be read";

// NVML allocates nothing: where the library can't be had, what shows the GPUs goes on showing them.
__attribute__((visibility("hidden"))) struct destination cuslice_stub_destination(const char* name, int flags,
                                                                                  const void* caller) {
    const dlopen_function own = __atomic_load_n(&entered, __ATOMIC_ACQUIRE), next = find_next_dlopen();
    (void)cuslice_stub_keeps;
    if (is_of_library(caller, next))
        return (struct destination){next, name};
    if (own)
        return (struct destination){own, name};
    const bool launcher = name && wants_none(name);
    if (launcher)
        __atomic_store_n(&entered, next, __ATOMIC_RELEASE);
    if ((flags & RTLD_NOLOAD) || !name || !*name || launcher)
        return (struct destination){next, name};
    const enum leads itself = leads_by_name(name), leads = itself ? itself : look_ahead(name, caller, next);
    const dlopen_function library = leads ? enter(next) : NULL;
    if (library)
        return (struct destination){library, name};
    if (leads == leads_to_driver)
        name = itself ? refused_driver : refused_library;
    if (leads == leads_unknown)
        name = refused_unread;
    return (struct destination){next, name};
}
