// SPDX-License-Identifier: Apache-2.0
// A library with a static runtime of its own.
#include <cuda_runtime_api.h>
#include <stdio.h>

#define VISIBLE __attribute__((visibility("default")))

static cudaError_t early = cudaSuccess;

#ifdef EARLY
// As the code does that nvcc writes, before the program's own constructors.
__attribute__((constructor)) static void begin(void) {
    int count = 0;
    early = cudaGetDeviceCount(&count);
}
#endif

VISIBLE int ask_library(void) {
    int count = 0;
    return cudaGetDeviceCount(&count);
}

VISIBLE void describe(char* into, size_t size) {
    int count = 0;
    size_t free = 0, total = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    cudaSetDevice(count - 1);
    cudaMemGetInfo(&free, &total);
    snprintf(into, size, "%d GPUs, error %d, the last has %zu MiB, early: %d", count, error, total >> 20, early);
}
