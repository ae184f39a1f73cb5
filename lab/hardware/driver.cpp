// SPDX-License-Identifier: Apache-2.0
#include "lab/hardware/driver.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace cuslice::check {

namespace {

[[noreturn]] void give_up(const std::string& line) {
    std::fprintf(stderr, "%s\n", line.c_str());
    std::exit(1);
}

std::string own_folder() {
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    if (length <= 0)
        give_up("/proc/self/exe cannot be read");
    const std::string whole(path, static_cast<size_t>(length));
    return whole.substr(0, whole.rfind('/'));
}

}  // namespace

void* driver_library() {
    static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        give_up(std::string("no driver: ") + dlerror());
    return library;
}

void* find(const char* symbol) { return dlsym(driver_library(), symbol); }

void* require(const char* symbol) {
    void* function = find(symbol);
    if (!function)
        give_up(std::string("the driver has no ") + symbol);
    return function;
}

const char* name_of(CUresult result) {
    static thread_local char unknown[32];
    const char* name = nullptr;
    if (CU(cuGetErrorName)(result, &name) == CUDA_SUCCESS && name)
        return name;
    std::snprintf(unknown, sizeof unknown, "error %d", static_cast<int>(result));
    return unknown;
}

void must(CUresult result, const char* call) {
    if (result != CUDA_SUCCESS)
        give_up(std::string(call) + ": " + name_of(result));
}

Gpu find_gpu() {
    Gpu gpu;
    MUST(cuInit, 0);
    MUST(cuDeviceGet, &gpu.device, 0);
    MUST(cuDeviceGetName, gpu.name, sizeof gpu.name, gpu.device);
    CUuuid uuid{};
    MUST(cuDeviceGetUuid_v2, &uuid, gpu.device);
    char* at = gpu.uuid + std::snprintf(gpu.uuid, sizeof gpu.uuid, "GPU-");
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        at += std::snprintf(at, 3, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    }
    return gpu;
}

void open_context(Gpu& gpu) {
    MUST(cuDevicePrimaryCtxRetain, &gpu.context, gpu.device);
    MUST(cuCtxSetCurrent, gpu.context);
}

bool kernels_are_skipped() { return std::getenv("CUSLICE_FAKE") != nullptr; }

CUmodule load_kernels(const char* file) {
    std::ifstream stream(own_folder() + "/" + file, std::ios::binary);
    if (!stream)
        give_up(std::string(file) + " is not beside the program");
    const std::string image{std::istreambuf_iterator<char>(stream), {}};
    CUmodule module = nullptr;
    MUST(cuModuleLoadData, &module, image.c_str());
    return module;
}

CUfunction kernel(CUmodule module, const char* name) {
    CUfunction function = nullptr;
    MUST(cuModuleGetFunction, &function, module, name);
    return function;
}

}  // namespace cuslice::check
