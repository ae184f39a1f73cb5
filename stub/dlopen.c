// Programs that open the driver while they run. Nothing happens before they do.
#include <dlfcn.h>

#include "stub/library.h"
#include "stub/text.h"

// Where dlopen goes on, and with which name: for the assembly, which returns both in registers.
struct destination {
    dlopen_function to;
    const char* name;
};
struct destination cuslice_stub_destination(const char* name, int flags);

// Of a library that was preloaded otherwise, as by cuslice run.
__attribute__((weak, visibility("default"))) const char* cuslice_marker(void);

typedef dlopen_function (*entrance)(dlopen_function);

static dlopen_function entered;  // the library's own dlopen, once it is in

static bool is_driver(const char* file) { return equal(file, "libcuda.so") || equal(file, "libcuda.so.1"); }
static bool brings_driver(const char* file) {
    return is_driver(file) || equal(file, "libnvidia-ml.so") || equal(file, "libnvidia-ml.so.1") ||
           begins_with(file, "libcudart.so");
}

// What the launcher opens, in vain, so that it sees the driver as it is: a program could do so too, as it could do much
// else.
static bool wants_none(const char* name) { return equal(name, "/proc/cuslice launcher"); }

// Null, with the reason said, where the library can't be had. Two threads may do this at once.
static dlopen_function enter(dlopen_function next) {
    char path[1024] = "libcuslice.so";
    const char* why = library_path(path, sizeof(path)) ? library_fault(path) : "has no path";
    void* library = why ? NULL : next(path, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
    if (!library && !why) why = "cannot be loaded";
    const entrance enter_library = library ? (entrance)find_in(library, CUSLICE_ENTRANCE_NAME) : NULL;
    if (!enter_library) {
        say_refused(path, why ? why : "is older than libcuslice-preload.so", false);
        return NULL;
    }
    const dlopen_function own = enter_library(next);
    __atomic_store_n(&entered, own, __ATOMIC_RELEASE);
    return own;
}

// NVML allocates nothing: where the library can't be had, what shows the GPUs goes on showing them.
__attribute__((visibility("hidden"))) struct destination cuslice_stub_destination(const char* name, int flags) {
    const dlopen_function own = __atomic_load_n(&entered, __ATOMIC_ACQUIRE), next = find_next_dlopen();
    const char* const file = name ? last_component(name) : "";
    (void)cuslice_stub_keeps;
    if (own) return (struct destination){own, name};
    if (name && wants_none(name)) __atomic_store_n(&entered, next, __ATOMIC_RELEASE);
    if (cuslice_marker || (flags & RTLD_NOLOAD) || !brings_driver(file)) return (struct destination){next, name};
    const dlopen_function library = enter(next);
    if (library) return (struct destination){library, name};
    // A path that is never there, whose text the program finds in dlerror().
    return (struct destination){next,
                                is_driver(file) ? "/proc/cuslice refuses CUDA to this program: libcuda.so.1" : name};
}
