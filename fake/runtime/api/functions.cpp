// SPDX-License-Identifier: Apache-2.0
// Kernels as objects: attributes and occupancy.

#include "fake/runtime/forward.h"
#include "fake/runtime/launch_config.h"
#include "fake/runtime/modules.h"
#include "fake/runtime/registry.h"
#include "fake/runtime/state.h"

using namespace cuslice::fake;

namespace {

/// Finds the driver's function for `kernel` and hands it to `call`.
template <class Call>
cudaError_t with_function(const void* kernel, Call call) {
    return in_context([&] {
        CUfunction function = nullptr;
        CUSLICE_TRY(function_of(kernel, &function));
        return as_error(call(function));
    });
}

}  // namespace

/// Forwards a function whose parameter `kernel` is what a launch names, and the driver's function there.
#define CUSLICE_FORWARD_KERNEL(name, in_driver, version, ...)    \
    cudaError_t name(CUSLICE_PARAMETERS(name, __VA_ARGS__)) {    \
        return with_function(kernel, [&](CUfunction function) {  \
            kernel = function;                                   \
            return forward(CU(in_driver, version), __VA_ARGS__); \
        });                                                      \
    }

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
    if (attributes == nullptr)
        return record(cudaErrorInvalidValue);
    return with_function(kernel, [&](CUfunction function) {
        cudaFuncAttributes found{};
        int shared = 0;
        int constant = 0;
        int local = 0;
        const struct {
            CUfunction_attribute attribute;
            int* value;
        } wanted[] = {
            {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &shared},
            {CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, &constant},
            {CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &local},
            {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &found.maxThreadsPerBlock},
            {CU_FUNC_ATTRIBUTE_NUM_REGS, &found.numRegs},
            {CU_FUNC_ATTRIBUTE_PTX_VERSION, &found.ptxVersion},
            {CU_FUNC_ATTRIBUTE_BINARY_VERSION, &found.binaryVersion},
            {CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, &found.cacheModeCA},
            {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &found.maxDynamicSharedSizeBytes},
            {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, &found.preferredShmemCarveout},
            {CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, &found.clusterDimMustBeSet},
            {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, &found.requiredClusterWidth},
            {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, &found.requiredClusterHeight},
            {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, &found.requiredClusterDepth},
            {CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, &found.clusterSchedulingPolicyPreference},
            {CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, &found.nonPortableClusterSizeAllowed},
        };
        for (const auto& one : wanted) {
            CUSLICE_TRY(CU(cuFuncGetAttribute, 2020)(one.value, one.attribute, function));
        }
        // PTX of ours is loaded, whatever the program's code is.
        if (const int cubin = cubin_capability_of(kernel); cubin != 0)
            found.binaryVersion = cubin;
        found.sharedSizeBytes = static_cast<size_t>(shared);
        found.constSizeBytes = static_cast<size_t>(constant);
        found.localSizeBytes = static_cast<size_t>(local);
        *attributes = found;
        return CUDA_SUCCESS;
    });
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
