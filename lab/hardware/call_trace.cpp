// SPDX-License-Identifier: Apache-2.0
// Traces the driver's functions that a program calls, in their order, and the moment when the primary context comes
// into being. A library in the driver's place: preloaded (its SONAME is the driver's), or named to cuslice as the
// driver. Every call is noted and goes on to the real driver with nothing changed; the addresses that
// cuGetProcAddress returns are exchanged for the stubs here, so that the runtime's calls are seen. What it calls in a
// private way isn't: then the context is there without a call that makes one.
//
//   CHECK_DRIVER   the real driver's file
//   CHECK_TRACE    where to write: that name, a dot and the process's number
//
// A line a call, until the first launch: function <tab> whether the primary context of GPU 0 is active <tab> whether
// this thread has a current context, both before the call.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
// By number, as in functions.def: what is exported here, and NVIDIA's.
#define CUSLICE_FUNCTION(symbol, name, version, stream, route, split, turn) \
    extern const char check_stub_##symbol[] __asm__(#symbol);
#include "virtual_gpu/driver/functions.def"
__attribute__((visibility("hidden"))) const void* check_traced(unsigned number);
}

namespace {

enum Number : unsigned {
#define CUSLICE_FUNCTION(symbol, name, version, stream, route, split, turn) k_##symbol,
#include "virtual_gpu/driver/functions.def"
    kCount
};

struct Traced {
    const char* name;
    const void* stub;
};
const Traced kTraced[] = {
#define CUSLICE_FUNCTION(symbol, name, version, stream, route, split, turn) {#symbol, check_stub_##symbol},
#include "virtual_gpu/driver/functions.def"
};

void* the_real[kCount];
std::atomic<int> the_file{-1};

int missing() { return 500; }  // CUDA_ERROR_NOT_FOUND

void load() {
    const char *driver = std::getenv("CHECK_DRIVER"), *path = std::getenv("CHECK_TRACE");
    void* library = driver ? dlopen(driver, RTLD_NOW) : nullptr;
    if (!library) {
        const char* why = driver ? dlerror() : "CHECK_DRIVER is not set";
        std::fprintf(stderr, "call_trace: no driver: %s\n", why ? why : "");
        return;
    }
    for (unsigned i = 0; i < kCount; i++)
        the_real[i] = dlsym(library, kTraced[i].name);
    if (!path)
        return;
    char name[4096];
    std::snprintf(name, sizeof name, "%s.%d", path, static_cast<int>(getpid()));
    the_file = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

void ready() {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
}

template <typename Function>
Function* real(Number number) {
    return reinterpret_cast<Function*>(the_real[number]);
}

void note(unsigned number) {
    const int file = the_file;
    if (file < 0)
        return;
    const char* name = kTraced[number].name;
    unsigned flags = 0;
    int active = 0;
    void* current = nullptr;
    if (auto* state = real<int(int, unsigned*, int*)>(k_cuDevicePrimaryCtxGetState))
        if (state(0, &flags, &active) != 0)
            active = 0;
    if (auto* get = real<int(void**)>(k_cuCtxGetCurrent))
        if (get(&current) != 0)
            current = nullptr;
    char line[256];
    const int length = std::snprintf(line, sizeof line, "%s\t%d\t%d\n", name, active, current != nullptr);
    const ssize_t written = write(file, line, static_cast<size_t>(length));
    static_cast<void>(written);  // a trace that can't be written is short, and the program goes on
    if (std::strncmp(name, "cuLaunch", 8) == 0)
        the_file = -1;
}

const void* stub_for(const void* address) {
    for (unsigned i = 0; address && i < kCount; i++)
        if (the_real[i] == address)
            return kTraced[i].stub;
    return address;
}

}  // namespace

extern "C" {

const void* check_traced(unsigned number) {
    ready();
    note(number);
    return the_real[number] ? the_real[number] : reinterpret_cast<const void*>(&missing);
}

__attribute__((visibility("default"))) int cuGetProcAddress(const char* name, void** address, int version,
                                                            uint64_t flags) {
    ready();
    note(k_cuGetProcAddress);
    auto* function = real<int(const char*, void**, int, uint64_t)>(k_cuGetProcAddress);
    const int result = function ? function(name, address, version, flags) : missing();
    if (result == 0 && address)
        *address = const_cast<void*>(stub_for(*address));
    return result;
}

__attribute__((visibility("default"))) int cuGetProcAddress_v2(const char* name, void** address, int version,
                                                               uint64_t flags, void* status) {
    ready();
    note(k_cuGetProcAddress_v2);
    auto* function = real<int(const char*, void**, int, uint64_t, void*)>(k_cuGetProcAddress_v2);
    const int result = function ? function(name, address, version, flags, status) : missing();
    if (result == 0 && address)
        *address = const_cast<void*>(stub_for(*address));
    return result;
}
}
