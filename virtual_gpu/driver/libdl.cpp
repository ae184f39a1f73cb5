// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/driver/libdl.h"

#include <cstdint>
#include <cstring>

#include "elf/object.h"

namespace cuslice {

namespace {

void* find(const char* name) {
    struct Search {
        const char* name;
        void* found;
    } search{name, nullptr};
    const auto visit = [](dl_phdr_info* info, size_t, void* argument) {
        auto& [wanted, found] = *static_cast<Search*>(argument);
        const elf_object object = elf_object_of(info);
        const char* const soname = object.soname ? object.soname : "";
        if (std::strcmp(soname, "libc.so.6") != 0 && std::strcmp(soname, "libdl.so.2") != 0)
            return 0;
        const ElfW(Sym)* const symbol = elf_find_symbol(&object, wanted, elf_gnu_hash(wanted));
        found = symbol ? reinterpret_cast<void*>(object.base + symbol->st_value) : nullptr;
        return found ? 1 : 0;
    };
    dl_iterate_phdr(visit, &search);
    return search.found;
}

// `known`: an earlier call's, the same value whoever writes it. Looks again as long as there is none. Released, as
// it may lie in a library that this thread has just had loaded, and acquired before another one runs that code.
template <typename Function>
Function* function_named(const char* name, Function*& known) {
    Function* function = __atomic_load_n(&known, __ATOMIC_ACQUIRE);
    if (function)
        return function;
    Libdl::load();
    function = reinterpret_cast<Function*>(find(name));
    __atomic_store_n(&known, function, __ATOMIC_RELEASE);
    return function;
}

}  // namespace

void Libdl::load() {
    if (find("dlopen"))
        return;
    // The function by which the C library of that time opens modules of its own. Its flag says that the call is such.
    constexpr int kFromInside = static_cast<int>(0x80000000);
    const auto open = reinterpret_cast<void* (*)(const char*, int)>(find("__libc_dlopen_mode"));
    if (open)
        open("libdl.so.2", RTLD_NOW | kFromInside);
}

void* Libdl::dlsym(void* handle, const char* name) {
    constinit static decltype(::dlsym)* known = nullptr;
    const auto function = function_named("dlsym", known);
    return function ? function(handle, name) : nullptr;
}

void* Libdl::dlvsym(void* handle, const char* name, const char* version) {
    constinit static decltype(::dlvsym)* known = nullptr;
    const auto function = function_named("dlvsym", known);
    return function ? function(handle, name, version) : nullptr;
}

int Libdl::dladdr(const void* address, Dl_info* info) {
    constinit static decltype(::dladdr)* known = nullptr;
    const auto function = function_named("dladdr", known);
    return function ? function(address, info) : 0;
}

int Libdl::dladdr1(const void* address, Dl_info* info, void** more, int flags) {
    constinit static decltype(::dladdr1)* known = nullptr;
    const auto function = function_named("dladdr1", known);
    return function ? function(address, info, more, flags) : 0;
}

int Libdl::dlinfo(void* handle, int request, void* answer) {
    constinit static decltype(::dlinfo)* known = nullptr;
    const auto function = function_named("dlinfo", known);
    return function ? function(handle, request, answer) : -1;
}

int Libdl::dlclose(void* handle) {
    constinit static decltype(::dlclose)* known = nullptr;
    const auto function = function_named("dlclose", known);
    return function ? function(handle) : -1;
}

char* Libdl::dlerror() {
    constinit static decltype(::dlerror)* known = nullptr;
    const auto function = function_named("dlerror", known);
    return function ? function() : nullptr;
}

}  // namespace cuslice
