// SPDX-License-Identifier: Apache-2.0
// Settings of a device or its context, and functions that wait for it or reset it.

#include "fake/runtime/forward.h"

#include <cuda_profiler_api.h>

using namespace cuslice::fake;

CUSLICE_FORWARD(cudaDeviceSynchronize, cuCtxSynchronize, 2000)

cudaError_t cudaDeviceReset() {
    return started([] {
        int device = 0;
        cudaError_t error = current_device(&device);
        if (error == cudaSuccess)
            error = reset_device(device);
        if (error == cudaSuccess)
            forget_last_error();
        return error;
    });
}

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
    return started([&] {
        int device = 0;
        const cudaError_t error = current_device(&device);
        return error != cudaSuccess ? error : on_device(device, [&](CUdevice handle) {
            return CU(cuDevicePrimaryCtxSetFlags, 11000)(handle, flags);
        });
    });
}

cudaError_t cudaGetDeviceFlags(unsigned int* flags) {
    return started([&] {
        int device = 0;
        const cudaError_t error = current_device(&device);
        return error != cudaSuccess ? error : on_device(device, [&](CUdevice handle) {
            int active = 0;
            return CU(cuDevicePrimaryCtxGetState, 7000)(handle, flags, &active);
        });
    });
}

CUSLICE_FORWARD(cudaDeviceSetLimit, cuCtxSetLimit, 3010, limit, value)
CUSLICE_FORWARD(cudaDeviceGetLimit, cuCtxGetLimit, 3010, value, limit)

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
    CUfunc_cache found = CU_FUNC_CACHE_PREFER_NONE;
    const cudaError_t error = in_context(CU(cuCtxGetCacheConfig, 3020), &found);
    if (error == cudaSuccess && config != nullptr)
        *config = static_cast<cudaFuncCache>(found);
    return config == nullptr ? record(cudaErrorInvalidValue) : error;
}

CUSLICE_FORWARD(cudaDeviceSetCacheConfig, cuCtxSetCacheConfig, 3020, config)

cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
    CUsharedconfig found = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
    const cudaError_t error = in_context(CU(cuCtxGetSharedMemConfig, 4020), &found);
    if (error == cudaSuccess && config != nullptr)
        *config = static_cast<cudaSharedMemConfig>(found);
    return config == nullptr ? record(cudaErrorInvalidValue) : error;
}

CUSLICE_FORWARD(cudaDeviceSetSharedMemConfig, cuCtxSetSharedMemConfig, 4020, config)
CUSLICE_FORWARD(cudaDeviceGetStreamPriorityRange, cuCtxGetStreamPriorityRange, 5050, least, greatest)
CUSLICE_FORWARD(cudaDeviceFlushGPUDirectRDMAWrites, cuFlushGPUDirectRDMAWrites, 11030, target, scope)
CUSLICE_FORWARD(cudaCtxResetPersistingL2Cache, cuCtxResetPersistingL2Cache, 11000)
CUSLICE_FORWARD(cudaProfilerStart, cuProfilerStart, 4000)
CUSLICE_FORWARD(cudaProfilerStop, cuProfilerStop, 4000)
