// SPDX-License-Identifier: Apache-2.0
// A program on the driver API.

#include "fill.h"

#include <cuda.h>

namespace {

void check(CUresult result, const char* call) {
    if (result == CUDA_SUCCESS) {
        return;
    }
    const char* text = nullptr;
    cuGetErrorString(result, &text);
    std::fprintf(stderr, "driver_fill: %s failed with error %d (%s)\n", call, static_cast<int>(result),
                 text == nullptr ? "unknown" : text);
    std::exit(1);
}

CUdeviceptr device(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

struct Gpu {
    sample::Memory memory() {
        sample::Memory memory;
        check(cuMemGetInfo(&memory.free, &memory.total), "cuMemGetInfo");
        return memory;
    }
    void* allocate(size_t bytes) {
        CUdeviceptr pointer = 0;
        const CUresult result = cuMemAlloc(&pointer, bytes);
        if (result == CUDA_ERROR_OUT_OF_MEMORY) {
            return nullptr;
        }
        check(result, "cuMemAlloc");
        return reinterpret_cast<void*>(pointer);
    }
    void set(void* pointer, unsigned char value, size_t bytes) {
        check(cuMemsetD8(device(pointer), value, bytes), "cuMemsetD8");
    }
    void read(void* host, const void* pointer, size_t bytes) {
        check(cuMemcpyDtoH(host, device(pointer), bytes), "cuMemcpyDtoH");
    }
    void free(void* pointer) { check(cuMemFree(device(pointer)), "cuMemFree"); }
};

}  // namespace

int main(int count, char** arguments) {
    const sample::Options options = sample::parse(count, arguments, "driver_fill");
    CUdevice device = 0;
    CUcontext context = nullptr;
    sample::Result result;
    check(cuInit(0), "cuInit");
    check(cuDeviceGet(&device, options.device), "cuDeviceGet");
    check(cuDeviceGetName(result.device, sizeof result.device, device), "cuDeviceGetName");
    check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    Gpu gpu;
    const int status = sample::fill(gpu, options, "driver_fill", result);
    check(cuDevicePrimaryCtxRelease(device), "cuDevicePrimaryCtxRelease");
    return status;
}
