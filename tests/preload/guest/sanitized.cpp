// SPDX-License-Identifier: Apache-2.0
// Asks for the memory of the first GPU, and takes some of it.
#include <cuda.h>

#include <cstdio>

int main() {
    CUcontext context = nullptr;
    CUdeviceptr block = 0;
    size_t total = 0;
    const bool taken = cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
                       cuCtxSetCurrent(context) == CUDA_SUCCESS && cuDeviceTotalMem(&total, 0) == CUDA_SUCCESS &&
                       cuMemAlloc(&block, 1000) == CUDA_SUCCESS;
    std::printf("%d %zu\n", taken ? 1 : 0, total);
    return 0;
}
