// SPDX-License-Identifier: Apache-2.0
// A library that is preloaded beside cuslice and stands before dlsym, as HAMi-core and some profilers do: whoever looks
// up one of the driver's or NVML's functions that it counts gets one of its own, which goes on to what it finds by
// dlopen and the C library's dlsym. Other look-ups are answered as they are, from here: so RTLD_NEXT counts from this
// library.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

#include "virtual_gpu/driver/cuda_api.h"
#include "virtual_gpu/driver/nvml.h"

namespace {

using Dlsym = void* (*)(void*, const char*);

// The first that the C library has had for this processor.
#if defined(__aarch64__)
constexpr char kVersion[] = "GLIBC_2.17";
#else
constexpr char kVersion[] = "GLIBC_2.2.5";
#endif

Dlsym next_dlsym() {
    static const Dlsym next = reinterpret_cast<Dlsym>(dlvsym(RTLD_NEXT, "dlsym", kVersion));
    return next;
}

// The library's function as this one sees it, which must not be one of its own.
template <typename Function>
Function* beyond(const char* library, const char* name) {
    void* const handle = dlopen(library, RTLD_NOW);
    return handle ? reinterpret_cast<Function*>(next_dlsym()(handle, name)) : nullptr;
}

CUresult counted_alloc(CUdeviceptr* pointer, size_t bytes) {
    static auto* const alloc = beyond<decltype(cuMemAlloc_v2)>("libcuda.so.1", "cuMemAlloc_v2");
    return alloc(pointer, bytes);
}

CUresult counted_init(unsigned flags) {
    static auto* const init = beyond<decltype(cuInit)>("libcuda.so.1", "cuInit");
    return init(flags);
}

nvmlReturn_t counted_memory(nvmlDevice_t device, nvmlMemory_t* memory) {
    static auto* const real =
        beyond<decltype(::nvmlDeviceGetMemoryInfo)>("libnvidia-ml.so.1", "nvmlDeviceGetMemoryInfo");
    return real(device, memory);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void* dlsym(void* handle, const char* name) noexcept {
    if (std::strcmp(name, "cuInit") == 0)
        return reinterpret_cast<void*>(&counted_init);
    if (std::strcmp(name, "cuMemAlloc_v2") == 0)
        return reinterpret_cast<void*>(&counted_alloc);
    if (std::strcmp(name, "nvmlDeviceGetMemoryInfo") == 0)
        return reinterpret_cast<void*>(&counted_memory);
    return next_dlsym()(handle, name);
}
