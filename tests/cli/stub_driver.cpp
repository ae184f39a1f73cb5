// SPDX-License-Identifier: Apache-2.0
// A driver of two GPUs with the functions that the launcher asks. Built twice: as the fake GPU's driver, and, showing a
// quarter of the memory in the other order, as what a program sees through the library.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr size_t kTotal = size_t{8} << 30;

// The library shows the second GPU first, as with CUDA_VISIBLE_DEVICES=1,0.
int physical(CUdevice device) { return CUSLICE_STUB_SLICED ? 1 - device : device; }

}  // namespace

EXPORT CUresult cuInit(unsigned) { return std::getenv("STUB_NO_DEVICE") ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS; }

EXPORT CUresult cuGetErrorName(CUresult, const char** name) {
    *name = "CUDA_ERROR_NO_DEVICE";
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int* count) {
    *count = 2;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    *device = ordinal;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
    std::snprintf(name, static_cast<size_t>(size), "Stub \"%d\"", physical(device));
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
    std::memset(uuid->bytes, 0x50 + physical(device), sizeof uuid->bytes);
    // A virtual GPU's, in 32 hex digits.
    const char* const part = std::getenv("STUB_PART");
    if (CUSLICE_STUB_SLICED && device == 0 && part != nullptr) {
        for (unsigned i = 0; i < sizeof uuid->bytes; ++i)
            uuid->bytes[i] = static_cast<char>(std::stoi(std::string(part + 2 * i, 2), nullptr, 16));
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetPCIBusId(char* text, int size, CUdevice device) {
    std::snprintf(text, static_cast<size_t>(size), "0000:8%d:00.0", physical(device));
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice) {
    *bytes = CUSLICE_STUB_SLICED ? kTotal / 4 : kTotal;
    return CUDA_SUCCESS;
}

#if CUSLICE_STUB_SLICED

EXPORT void* dlopen(const char* name, int flags) {
    using Open = void*(const char*, int);
    auto* const next = reinterpret_cast<Open*>(dlsym(RTLD_NEXT, "dlopen"));
    Dl_info self;
    const bool driver = name != nullptr && std::strstr(name, "libcuda.so") != nullptr;
    if (driver && dladdr(reinterpret_cast<void*>(&physical), &self) != 0)
        name = self.dli_fname;
    return next(name, flags);
}

#else

EXPORT int cuslice_fake_check(const char* spec, char* message, size_t size) {
    if (std::strcmp(spec, "2xstub") == 0)
        return 0;
    std::snprintf(message, size, "no such profile; there is stub");
    return 1;
}

#endif
