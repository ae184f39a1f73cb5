// What can be set on a device or its context, and what waits for it or ends it.

#include "fake/runtime/state.h"

#include <cuda_profiler_api.h>

using namespace cuslice::fake;

cudaError_t cudaDeviceSynchronize() { return in_context(CU(cuCtxSynchronize, 2000)); }

cudaError_t cudaDeviceReset() {
    return started([] {
        int device = 0;
        cudaError_t error = current_device(&device);
        if (error == cudaSuccess) error = reset_device(device);
        if (error == cudaSuccess) forget_last_error();
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

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
    return in_context(CU(cuCtxSetLimit, 3010), static_cast<CUlimit>(limit), value);
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
    return in_context(CU(cuCtxGetLimit, 3010), value, static_cast<CUlimit>(limit));
}

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
    CUfunc_cache found = CU_FUNC_CACHE_PREFER_NONE;
    const cudaError_t error = in_context(CU(cuCtxGetCacheConfig, 3020), &found);
    if (error == cudaSuccess && config != nullptr) *config = static_cast<cudaFuncCache>(found);
    return config == nullptr ? record(cudaErrorInvalidValue) : error;
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config) {
    return in_context(CU(cuCtxSetCacheConfig, 3020), static_cast<CUfunc_cache>(config));
}

cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
    CUsharedconfig found = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
    const cudaError_t error = in_context(CU(cuCtxGetSharedMemConfig, 4020), &found);
    if (error == cudaSuccess && config != nullptr) *config = static_cast<cudaSharedMemConfig>(found);
    return config == nullptr ? record(cudaErrorInvalidValue) : error;
}

cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config) {
    return in_context(CU(cuCtxSetSharedMemConfig, 4020), static_cast<CUsharedconfig>(config));
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    return in_context(CU(cuCtxGetStreamPriorityRange, 5050), least, greatest);
}

cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTarget target,
                                               cudaFlushGPUDirectRDMAWritesScope scope) {
    return in_context(CU(cuFlushGPUDirectRDMAWrites, 11030), static_cast<CUflushGPUDirectRDMAWritesTarget>(target),
                      static_cast<CUflushGPUDirectRDMAWritesScope>(scope));
}

cudaError_t cudaCtxResetPersistingL2Cache() { return in_context(CU(cuCtxResetPersistingL2Cache, 11000)); }

cudaError_t cudaProfilerStart() { return in_context(CU(cuProfilerStart, 4000)); }

cudaError_t cudaProfilerStop() { return in_context(CU(cuProfilerStop, 4000)); }
