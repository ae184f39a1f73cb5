// SPDX-License-Identifier: Apache-2.0
// Launching kernels. The driver checks a launch; nothing here or there runs it. Built twice: legacy and per-thread
// default stream (_ptsz).

#include "fake/runtime/launch_config.h"
#include "fake/runtime/modules.h"
#include "fake/runtime/state.h"

#include <climits>

using namespace cuslice::fake;

// Declared in crt/device_functions.h, which only nvcc's own compilation includes.
#ifdef __CUDA_API_PER_THREAD_DEFAULT_STREAM
#define __cudaLaunchKernel __cudaLaunchKernel_ptsz
#endif
extern "C" cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                          size_t shared_bytes, cudaStream_t stream);

namespace {

/// The driver has one error for all that can be wrong with a launch; the runtime tells a wrong shape from the rest
/// (cudaErrorInvalidConfiguration).
cudaError_t launch_error(CUresult result, dim3 grid, dim3 block, size_t shared_bytes) {
    if (result != CUDA_ERROR_INVALID_VALUE)
        return as_error(result);
    CUdevice device = 0;
    if (CU(cuCtxGetDevice, 2000)(&device) != CUDA_SUCCESS)
        return as_error(result);
    const auto at_most = [&](CUdevice_attribute attribute, size_t value) {
        int limit = 0;
        return CU(cuDeviceGetAttribute, 2000)(&limit, attribute, device) == CUDA_SUCCESS &&
               value <= static_cast<size_t>(limit);
    };
    const bool shape_fits =
        grid.x != 0 && grid.y != 0 && grid.z != 0 && block.x != 0 && block.y != 0 && block.z != 0 &&
        at_most(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, grid.x) && at_most(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, grid.y) &&
        at_most(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, grid.z) && at_most(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, block.x) &&
        at_most(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, block.y) &&
        at_most(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, block.z) &&
        at_most(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, size_t{block.x} * block.y * block.z) &&
        at_most(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, shared_bytes);
    return shape_fits ? cudaErrorInvalidValue : cudaErrorInvalidConfiguration;
}

/// Finds the driver's function for `kernel` and hands it to `call`.
template <class Call>
cudaError_t launch(const void* kernel, dim3 grid, dim3 block, size_t shared_bytes, Call call) {
    if (shared_bytes > UINT_MAX) {  // the driver's argument has 32 bits
        return record(cudaErrorInvalidValue);
    }
    return in_context([&] {
        CUfunction function = nullptr;
        CUSLICE_TRY(function_of(kernel, &function));
        return launch_error(call(function), grid, block, shared_bytes);
    });
}

cudaError_t launch_plain(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                         cudaStream_t stream) {
    return launch(kernel, grid, block, shared_bytes, [&](CUfunction function) {
        return CU_STREAM(cuLaunchKernel, 4000)(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                               static_cast<unsigned>(shared_bytes), stream, arguments, nullptr);
    });
}

}  // namespace

cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                             cudaStream_t stream) {
    return launch_plain(kernel, grid, block, arguments, shared_bytes, stream);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                               cudaStream_t stream) {
    return launch_plain(kernel, grid, block, arguments, shared_bytes, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void** arguments) {
    if (config == nullptr)
        return record(cudaErrorInvalidValue);
    const CUlaunchConfig wanted = driver_config(*config);
    return launch(kernel, config->gridDim, config->blockDim, config->dynamicSmemBytes, [&](CUfunction function) {
        return CU_STREAM(cuLaunchKernelEx, 11060)(&wanted, function, arguments, nullptr);
    });
}

cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                        size_t shared_bytes, cudaStream_t stream) {
    return launch(kernel, grid, block, shared_bytes, [&](CUfunction function) {
        return CU_STREAM(cuLaunchCooperativeKernel, 9000)(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                                          static_cast<unsigned>(shared_bytes), stream, arguments);
    });
}
