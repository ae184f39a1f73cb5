// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "shim/entry.h"
#include "shim/loader/runtime_facade.h"
#include "shim/log.h"
#include "virtual_gpu/driver/borrowed_name.h"
#include "virtual_gpu/driver/driver_facade.h"
#include "virtual_gpu/driver/locate.h"
#include "virtual_gpu/driver/real_dlopen.h"

namespace {

using DlmopenFunction = void* (*)(Lmid_t, const char*, int);

void* no_dlmopen(Lmid_t, const char*, int) { return nullptr; }

// A namespace has objects of its own, and we are in none but the program's.
void say_out_of_reach(const char* name) {
    static constinit std::atomic<bool> said{false};
    if (said.exchange(true, std::memory_order_relaxed))
        return;
    const int saved_errno = errno;
    if (cuslice::ready() != cuslice::Readiness::bad_configuration && !cuslice::process().settings().entries().empty()) {
        cuslice::LogLine line;
        line.append(name, " is opened in a namespace of its own (dlmopen): code there has no limit");
        cuslice::log_line(cuslice::LogLevel::warn, line);
    }
    errno = saved_errno;
}

}  // namespace

extern "C" {

__attribute__((visibility("hidden"))) cuslice::DlopenFunction cuslice_next_dlopen = nullptr;

// Picks the library for a program that opens one by any name or path: ours in place of the driver and of NVML and,
// where GPUs are split, one that stands before the runtime. The trampoline in dlopen_x86_64.S calls this on every
// dlopen of the process, so it does next to nothing.
__attribute__((visibility("hidden"))) const char* cuslice_dlopen_name(const char* name, const void* caller, int flags) {
    __atomic_store_n(&cuslice_next_dlopen, cuslice::real_dlopen(), __ATOMIC_RELAXED);
    if (!name)
        return name;
    // From now on there may be code that was opened with RTLD_DEEPBIND, or needs the driver by that name.
    cuslice::driver_facade();
    // Both are loaded already, under these very SONAMEs, which is how the loader finds them.
    if (const char* const borrowed = cuslice::borrowed_name(name, caller)) {
        if (cuslice::in_real_library(caller))
            return name;
        if (!(flags & RTLD_NOLOAD))
            cuslice::remember_opening(borrowed, name, caller);
        return borrowed;
    }
    const char* const slash = std::strrchr(name, '/');
    const char* const file = slash ? slash + 1 : name;
    if (std::strncmp(file, "libcudart.so", 12) == 0)
        return cuslice::runtime_facade(name, caller, flags);
    return name;
}

__attribute__((visibility("hidden"))) DlmopenFunction cuslice_next_dlmopen = nullptr;

// The same for dlmopen. What is opened in another namespace than the program's can't be exchanged.
__attribute__((visibility("hidden"))) const char* cuslice_dlmopen_name(const char* name, const void* caller, int flags,
                                                                       Lmid_t space) {
    if (!__atomic_load_n(&cuslice_next_dlmopen, __ATOMIC_RELAXED)) {
        void* const next = cuslice::next_function("dlmopen");
        __atomic_store_n(&cuslice_next_dlmopen, next ? reinterpret_cast<DlmopenFunction>(next) : no_dlmopen,
                         __ATOMIC_RELAXED);
    }
    if (space == LM_ID_BASE)
        return cuslice_dlopen_name(name, caller, flags);
    if (name && cuslice::borrowed_name(name, caller) && !cuslice::in_real_library(caller))
        say_out_of_reach(name);
    return name;
}

// For the stub of /etc/ld.so.preload (stub/library.h), which has opened this library as a program came to CUDA: from
// now on the stub sends the program's calls to our dlopen, and ours go to the one that is behind the stub's.
__attribute__((visibility("default"))) cuslice::DlopenFunction cuslice_enter_1(cuslice::DlopenFunction next) {
    cuslice::set_real_dlopen(next);
    return dlopen;
}
}
