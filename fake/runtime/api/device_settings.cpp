// SPDX-License-Identifier: Apache-2.0
// Settings of a device or its context, and functions that wait for it or reset it.

#include "fake/runtime/forward.h"

#include <cuda_profiler_api.h>

using namespace cuslice::fake;

namespace {

/// Asks for a setting that the runtime has an enumeration of its own for. The context is made whatever `config` is.
template <class Found, class Config, class Ask>
cudaError_t setting(Config* config, Ask ask) {
    Found found{};
    const cudaError_t error = in_context(ask, &found);
    if (config == nullptr)
        return record(cudaErrorInvalidValue);
    if (error == cudaSuccess)
        *config = static_cast<Config>(found);
    return error;
}

}  // namespace

CUSLICE_FORWARD(cudaDeviceSynchronize, cuCtxSynchronize, 2000)

cudaError_t cudaDeviceReset() {
    return started([] {
        int device = 0;
        CUSLICE_TRY(current_device(&device));
        CUSLICE_TRY(reset_device(device));
        forget_last_error();
        return cudaSuccess;
    });
}

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
    return started([&] {
        int device = 0;
        CUSLICE_TRY(current_device(&device));
        return on_device(device, [&](CUdevice handle) { return CU(cuDevicePrimaryCtxSetFlags, 11000)(handle, flags); });
    });
}

cudaError_t cudaGetDeviceFlags(unsigned int* flags) {
    return started([&] {
        int device = 0;
        CUSLICE_TRY(current_device(&device));
        return on_device(device, [&](CUdevice handle) {
            int active = 0;
            return CU(cuDevicePrimaryCtxGetState, 7000)(handle, flags, &active);
        });
    });
}

CUSLICE_FORWARD(cudaDeviceSetLimit, cuCtxSetLimit, 3010, limit, value)
CUSLICE_FORWARD(cudaDeviceGetLimit, cuCtxGetLimit, 3010, value, limit)

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
    return setting<CUfunc_cache>(config, CU(cuCtxGetCacheConfig, 3020));
}

CUSLICE_FORWARD(cudaDeviceSetCacheConfig, cuCtxSetCacheConfig, 3020, config)

cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
    return setting<CUsharedconfig>(config, CU(cuCtxGetSharedMemConfig, 4020));
}

CUSLICE_FORWARD(cudaDeviceSetSharedMemConfig, cuCtxSetSharedMemConfig, 4020, config)
CUSLICE_FORWARD(cudaDeviceGetStreamPriorityRange, cuCtxGetStreamPriorityRange, 5050, least, greatest)
CUSLICE_FORWARD(cudaDeviceFlushGPUDirectRDMAWrites, cuFlushGPUDirectRDMAWrites, 11030, target, scope)
CUSLICE_FORWARD(cudaCtxResetPersistingL2Cache, cuCtxResetPersistingL2Cache, 11000)
CUSLICE_FORWARD(cudaProfilerStart, cuProfilerStart, 4000)
CUSLICE_FORWARD(cudaProfilerStop, cuProfilerStop, 4000)
