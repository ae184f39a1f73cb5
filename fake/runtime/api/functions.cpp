// SPDX-License-Identifier: Apache-2.0
// Kernels as objects: settings and occupancy.

#include "fake/runtime/forward.h"
#include "fake/runtime/launch_config.h"
#include "fake/runtime/modules.h"
#include "fake/runtime/registry.h"
#include "fake/runtime/state.h"

using namespace cuslice::fake;

/// Forwards a function whose parameter `kernel` is what a launch names, and the driver's function there.
#define CUSLICE_FORWARD_KERNEL(name, in_driver, version, ...)    \
    cudaError_t name(CUSLICE_PARAMETERS(name, __VA_ARGS__)) {    \
        return with_function(kernel, [&](CUfunction function) {  \
            kernel = function;                                   \
            return forward(CU(in_driver, version), __VA_ARGS__); \
        });                                                      \
    }

CUSLICE_FORWARD_KERNEL(cudaFuncSetAttribute, cuFuncSetAttribute, 9000, kernel, attribute, value)
CUSLICE_FORWARD_KERNEL(cudaFuncSetCacheConfig, cuFuncSetCacheConfig, 3000, kernel, config)
CUSLICE_FORWARD_KERNEL(cudaFuncSetSharedMemConfig, cuFuncSetSharedMemConfig, 4020, kernel, config)

cudaError_t cudaFuncGetName(const char** name, const void* kernel) {
    if (name == nullptr)
        return record(cudaErrorInvalidValue);
    Lock held;
    const RegisteredKernel* const found = find_kernel(kernel);
    if (found == nullptr)
        return record(cudaErrorInvalidDeviceFunction);
    *name = found->name;
    return cudaSuccess;
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
    if (function == nullptr)
        return record(cudaErrorInvalidValue);
    return with_function(symbol, [&](CUfunction found) {
        *function = found;
        return CUDA_SUCCESS;
    });
}

CUSLICE_FORWARD_KERNEL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
                       cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000, blocks, kernel, block_size,
                       shared_bytes, flags)

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel, int block_size,
                                                          size_t shared_bytes) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, block_size, shared_bytes,
                                                                  cudaOccupancyDefault);
}

CUSLICE_FORWARD_KERNEL(cudaOccupancyAvailableDynamicSMemPerBlock, cuOccupancyAvailableDynamicSMemPerBlock, 10020, bytes,
                       kernel, blocks, block_size)

cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* kernel, const cudaLaunchConfig_t* config) {
    if (config == nullptr)
        return record(cudaErrorInvalidValue);
    return with_function(kernel, [&](CUfunction function) {
        const CUlaunchConfig wanted = driver_config(*config);
        return CU(cuOccupancyMaxPotentialClusterSize, 11070)(size, function, &wanted);
    });
}

cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* kernel, const cudaLaunchConfig_t* config) {
    if (config == nullptr)
        return record(cudaErrorInvalidValue);
    return with_function(kernel, [&](CUfunction function) {
        const CUlaunchConfig wanted = driver_config(*config);
        return CU(cuOccupancyMaxActiveClusters, 11070)(clusters, function, &wanted);
    });
}
