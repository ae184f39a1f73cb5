// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/two_drivers.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace cuslice::bench {

namespace {

[[noreturn]] void give_up(const char* what, const char* why) {
    std::fprintf(stderr, "bench: %s: %s\n", what, why ? why : "");
    std::exit(1);
}

// One function of a library, known to be in the file that it should be in.
template <typename Pointer>
void get(void* handle, const char* symbol, const char* file, Pointer& pointer) {
    pointer = reinterpret_cast<Pointer>(dlsym(handle, symbol));
    if (!pointer)
        give_up(symbol, dlerror());
    Dl_info info;
    if (!dladdr(reinterpret_cast<void*>(pointer), &info))
        give_up(symbol, "belongs to no library");
    const char* end = info.dli_fname + std::strlen(info.dli_fname) - std::strlen(file);
    if (end < info.dli_fname || std::strcmp(end, file) != 0)
        give_up(symbol, info.dli_fname);
}

Driver functions(void* handle, const char* file) {
    Driver driver;
    get(handle, "cuInit", file, driver.init);
    get(handle, "cuDevicePrimaryCtxRetain", file, driver.retain);
    get(handle, "cuCtxSetCurrent", file, driver.set_current);
    get(handle, "cuCtxGetCurrent", file, driver.get_current);
    get(handle, "cuMemGetInfo_v2", file, driver.memory_info);
    get(handle, "cuCtxSynchronize", file, driver.synchronize);
    get(handle, "cuMemAlloc_v2", file, driver.allocate);
    get(handle, "cuMemFree_v2", file, driver.free);
    get(handle, "cuMemAllocAsync", file, driver.allocate_async);
    get(handle, "cuMemFreeAsync", file, driver.free_async);
    get(handle, "cuGetProcAddress_v2", file, driver.look_up);
    get(handle, "cuModuleLoadData", file, driver.load_module);
    get(handle, "cuModuleGetFunction", file, driver.get_function);
    get(handle, "cuLaunchKernel", file, driver.launch);
    return driver;
}

}  // namespace

void must(CUresult result, const char* what) {
    if (result == CUDA_SUCCESS)
        return;
    std::fprintf(stderr, "bench: %s failed with error %d\n", what, static_cast<int>(result));
    std::exit(1);
}

namespace {

// Before glibc 2.34 it lay in libdl.so.2.
auto dlmopen_of_libc() {
    for (const char* library : {"libc.so.6", "libdl.so.2"}) {
        void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
        void* const found = handle ? dlsym(handle, "dlmopen") : nullptr;
        if (found)
            return reinterpret_cast<decltype(&dlmopen)>(found);
    }
    give_up("dlmopen", "is in no C library");
}

}  // namespace

TwoDrivers open_two_drivers(const char* raw_path) {
    TwoDrivers drivers;
    void* ours = dlopen("libcuda.so.1", RTLD_NOW);
    if (!ours)
        give_up("libcuda.so.1", dlerror());
    drivers.ours = functions(ours, "/libcuslice.so");
    must(drivers.ours.init(0), "cuInit");
    must(drivers.ours.retain(&drivers.context, 0), "cuDevicePrimaryCtxRetain");
    must(drivers.ours.set_current(drivers.context), "cuCtxSetCurrent");

    // By now the driver beneath is loaded. By dlopen and dlmopen cuslice gives itself for this name.
    void* raw = dlmopen_of_libc()(LM_ID_BASE, raw_path, RTLD_NOW | RTLD_NOLOAD);
    if (!raw)
        give_up(raw_path, "is not the driver that cuslice has loaded");
    drivers.raw = functions(raw, std::strrchr(raw_path, '/'));
    if (reinterpret_cast<void*>(drivers.raw.allocate) == reinterpret_cast<void*>(drivers.ours.allocate))
        give_up(raw_path, "is cuslice itself");
    return drivers;
}

bool limit_in_force(const TwoDrivers& drivers) {
    size_t free = 0, limit = 0, raw_free = 0, raw_total = 0;
    must(drivers.ours.memory_info(&free, &limit), "cuMemGetInfo");
    must(drivers.raw.memory_info(&raw_free, &raw_total), "cuMemGetInfo of the driver beneath");
    CUdeviceptr block = 0;
    if (drivers.ours.allocate(&block, limit) != CUDA_ERROR_OUT_OF_MEMORY || limit >= raw_total)
        return false;
    if (drivers.raw.allocate(&block, limit) != CUDA_SUCCESS)
        return false;
    must(drivers.raw.free(block), "cuMemFree of the driver beneath");
    return true;
}

}  // namespace cuslice::bench
