// SPDX-License-Identifier: Apache-2.0
// A program on the CUDA runtime API. Built by nvcc it has a kernel and a variable on the device; by another compiler it is
// the same program without them.

#include "fill.h"

#include <cuda_runtime_api.h>

namespace {

void check(cudaError_t error, const char* call) {
    if (error == cudaSuccess) {
        return;
    }
    std::fprintf(stderr, "runtime_fill: %s failed with error %d (%s: %s)\n", call, static_cast<int>(error),
                 cudaGetErrorName(error), cudaGetErrorString(error));
    std::exit(1);
}

struct Gpu {
    sample::Memory memory() {
        sample::Memory memory;
        check(cudaMemGetInfo(&memory.free, &memory.total), "cudaMemGetInfo");
        return memory;
    }
    void* allocate(size_t bytes) {
        void* pointer = nullptr;
        const cudaError_t error = cudaMalloc(&pointer, bytes);
        if (error == cudaErrorMemoryAllocation) {
            cudaGetLastError();
            return nullptr;
        }
        check(error, "cudaMalloc");
        return pointer;
    }
    void set(void* pointer, unsigned char value, size_t bytes) {
        check(cudaMemset(pointer, value, bytes), "cudaMemset");
    }
    void read(void* host, const void* pointer, size_t bytes) {
        check(cudaMemcpy(host, pointer, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
    }
    void free(void* pointer) { check(cudaFree(pointer), "cudaFree"); }
};

}  // namespace

#ifdef __CUDACC__

__device__ int counter;

__global__ void add(int value) { atomicAdd(&counter, value); }

/// Sets the variable, adds to it in a kernel, and reads it.
static const char* run_kernel(sample::Result& result) {
    const int start = 40;
    int end = 0;
    check(cudaMemcpyToSymbol(counter, &start, sizeof start), "cudaMemcpyToSymbol");
    add<<<1, 2>>>(1);
    check(cudaGetLastError(), "the launch");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    check(cudaMemcpyFromSymbol(&end, counter, sizeof end), "cudaMemcpyFromSymbol");
    result.verified = end == start || end == start + 2;
    return end == start + 2 ? "ran" : "did not run";
}

#else

static const char* run_kernel(sample::Result&) { return "none"; }

#endif

int main(int count, char** arguments) {
    const sample::Options options = sample::parse(count, arguments, "runtime_fill");
    sample::Result result;
    cudaDeviceProp properties;
    check(cudaSetDevice(options.device), "cudaSetDevice");
    check(cudaGetDeviceProperties(&properties, options.device), "cudaGetDeviceProperties");
    std::snprintf(result.device, sizeof result.device, "%s", properties.name);
    result.kernel = run_kernel(result);
    Gpu gpu;
    return sample::fill(gpu, options, "runtime_fill", result);
}
