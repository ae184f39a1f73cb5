// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime, as the shared library that programs link or open.
#include "probe.h"

DECLARE(int, cudaRuntimeGetVersion, int*);
DECLARE(int, cudaDriverGetVersion, int*);
DECLARE(int, cudaGetDeviceCount, int*);
DECLARE(int, cudaSetDevice, int);
DECLARE(int, cudaGetDevice, int*);
DECLARE(int, cudaMalloc, void**, size_t);
DECLARE(int, cudaFree, void*);
DECLARE(int, cudaMemGetInfo, size_t*, size_t*);
DECLARE(int, cudaStreamCreate, void**);
DECLARE(int, cudaDeviceSynchronize, void);
DECLARE(int, cudaGetLastError, void);
DECLARE(const char*, cudaGetErrorString, int);

int main(void) {
    int runtime = 0;
    int driver = 0;
    int number = -7;
    size_t free_bytes = 0;
    size_t total = 0;
    void* address = NULL;
    SHOW(cudaRuntimeGetVersion, &runtime);
    SHOW(cudaDriverGetVersion, &driver);
    printf("runtime %d driver %d\n", runtime, driver);
    SHOW(cudaGetDeviceCount, &number);
    printf("count %d: %s\n", number, CALL(cudaGetErrorString, CALL(cudaGetLastError)));
    SHOW(cudaSetDevice, 0);
    SHOW(cudaGetDevice, &number);
    SHOW(cudaFree, NULL);
    SHOW(cudaMalloc, &address, 1 << 20);
    SHOW(cudaMemGetInfo, &free_bytes, &total);
    SHOW(cudaStreamCreate, &address);
    SHOW(cudaDeviceSynchronize);
    SHOW(cudaGetLastError);
    return 0;
}
