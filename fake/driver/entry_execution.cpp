// SPDX-License-Identifier: Apache-2.0
// Launches. Everything is checked as a driver checks it; the kernel itself is not run.

#include <cstring>

#include "fake/driver/architecture.h"
#include "fake/driver/launch.h"
#include "fake/driver/module.h"
#include "fake/driver/occupancy.h"
#include "fake/driver/skipped_kernels.h"
#include "fake/driver/state.h"
#include "fake/driver/stream_pair.h"
#include "fake/driver/submit.h"
#include "fake/driver/timing.h"

using namespace cuslice::fake;

namespace {

CUresult check_shape(const LaunchShape& shape, const Function& function) {
    uint64_t threads = 1;
    for (int i = 0; i < 3; i++) {
        if (shape.grid[i] == 0 || shape.grid[i] > kMaxGrid[i] || shape.block[i] == 0 || shape.block[i] > kMaxBlock[i]) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        threads *= shape.block[i];
    }
    if (threads > kMaxThreadsPerBlock)
        return CUDA_ERROR_INVALID_VALUE;
    if (threads > static_cast<uint64_t>(function.info->max_threads))
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    return shape.shared > static_cast<unsigned>(function.dynamic_shared) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/// The arguments come as one pointer for each, or as one buffer named in `extra`.
CUresult check_arguments(const KernelInfo& info, const LaunchArguments& arguments) {
    const auto [parameters, extra, said_before] = arguments;
    if (!info.parameters_known || said_before)
        return CUDA_SUCCESS;
    if (parameters != nullptr && extra != nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    if (info.parameters.empty())
        return CUDA_SUCCESS;
    if (parameters != nullptr) {
        // Only as many entries are read as the kernel has parameters: there is no end mark.
        for (size_t i = 0; i < info.parameters.size(); i++) {
            if (parameters[i] == nullptr)
                return CUDA_ERROR_INVALID_VALUE;
        }
        return CUDA_SUCCESS;
    }
    if (extra == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const void* buffer = nullptr;
    size_t size = 0;
    for (void** at = extra; *at != CU_LAUNCH_PARAM_END; at += 2) {
        if (at[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
            buffer = at[1];
        } else if (at[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
            if (at[1] == nullptr)
                return CUDA_ERROR_INVALID_VALUE;
            std::memcpy(&size, at[1], sizeof size);
        } else {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return buffer == nullptr || size < info.parameter_bytes() ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/// True if the GPU can run all blocks of the grid at the same time.
bool fits_at_once(const LaunchShape& shape, const KernelInfo& info, const GpuSpec& gpu) {
    const int block = static_cast<int>(shape.block[0] * shape.block[1] * shape.block[2]);
    const uint64_t most =
        gpu.multiprocessors * static_cast<uint64_t>(blocks_per_multiprocessor(info, gpu, block, shape.shared));
    return uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2] <= most;
}

/// Room for a kernel's local memory, which the driver takes at a launch where neither the stack's limit nor a kernel
/// before has needed as much.
CUresult take_local_memory(const KernelInfo& info, Context& context) {
    Gpu& gpu = *context.gpu;
    const auto local = static_cast<size_t>(info.local_bytes);
    const uint64_t before = thread_bytes(context), now = thread_bytes(gpu, local);
    if (now <= before)
        return CUDA_SUCCESS;
    if (!gpu.charge(now - before))
        return CUDA_ERROR_OUT_OF_MEMORY;
    context.local_bytes = local;
    return CUDA_SUCCESS;
}

/// All that doesn't depend on a stream; puts the function's code on the device. The driver's lock is held.
CUresult check_launch(CUfunction handle, const LaunchShape& shape, Context& context, const LaunchArguments& arguments,
                      bool cooperative) {
    CUSLICE_FIND(Function, function, launchable(handle, context, function));
    CUSLICE_TRY(check_shape(shape, *function));
    CUSLICE_TRY(check_arguments(*function->info, arguments));
    if (cooperative && !fits_at_once(shape, *function->info, context.gpu->spec))
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    if (driver().kernels_are_errors)
        CUSLICE_UNSUPPORTED("running kernels (CUSLICE_FAKE_KERNELS=error)");
    CUSLICE_TRY(load_function(*function));
    CUSLICE_TRY(take_local_memory(*function->info, context));
    log_skipped(*function->info, *function->image);
    return CUDA_SUCCESS;
}

/// Attributes that a launch may carry. Those that only tune are taken; those that change what it means are not there.
CUresult check_attributes(const CUlaunchConfig& config, bool& cooperative) {
    if (config.numAttrs > 0 && config.attrs == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < config.numAttrs; i++) {
        const CUlaunchAttribute& attribute = config.attrs[i];
        switch (static_cast<int>(attribute.id)) {
            case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
                cooperative = attribute.value.cooperative != 0;
                break;
            case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
                if (!divides_grid(config, attribute))
                    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
                break;
            case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
            case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
            case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
                CUSLICE_UNSUPPORTED("cuLaunchKernelEx with an event or an updatable node");
            default:
                break;
        }
    }
    return CUDA_SUCCESS;
}

CUresult launch_plain(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                      unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void** parameters,
                      void** extra, DefaultStream form) {
    const LaunchShape shape{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared};
    return launch(function, shape, stream, {parameters, extra}, false, form);
}

CUresult launch_cooperative(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                            unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void** parameters,
                            DefaultStream form) {
    const LaunchShape shape{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared};
    return launch(function, shape, stream, {parameters, nullptr}, true, form);
}

CUresult launch_config(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra,
                       DefaultStream form) {
    bool cooperative = false;
    if (config == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_TRY(check_attributes(*config, cooperative));
    const LaunchShape shape{{config->gridDimX, config->gridDimY, config->gridDimZ},
                            {config->blockDimX, config->blockDimY, config->blockDimZ},
                            config->sharedMemBytes};
    return launch(function, shape, config->hStream, {parameters, extra}, cooperative, form);
}

}  // namespace

namespace cuslice::fake {

CUresult load_function(Function& function) {
    if (function.loaded)
        return CUDA_SUCCESS;
    Gpu& gpu = *contexts.find(function.context)->gpu;
    if (!gpu.charge(gpu.spec.lazy_load))
        return CUDA_ERROR_OUT_OF_MEMORY;
    // With the module it goes back.
    modules.find(function.module)->charged += gpu.spec.lazy_load;
    gpu.books.note_modules(static_cast<int64_t>(gpu.spec.lazy_load));
    function.loaded = true;
    return CUDA_SUCCESS;
}

CUresult launch(CUfunction handle, const LaunchShape& shape, CUstream stream_handle, const LaunchArguments& arguments,
                bool cooperative, DefaultStream form) {
    Stream* stream = nullptr;
    std::shared_ptr<const KernelInfo> info;
    CUSLICE_FIND_CURRENT(context);
    const CallTime call(context->gpu->spec.launch_time);
    {
        const DriverLock hold;
        CUSLICE_FIND(Function, function, launchable(handle, *context, function));
        CUSLICE_TRY(find_stream(stream_handle, form, stream));
        if (stream->context != context->handle)
            return CUDA_ERROR_INVALID_HANDLE;
        CUSLICE_TRY(check_launch(handle, shape, *context, arguments, cooperative));
        info = function->info;
    }
    WorkQueue::Needs needs;
    CUSLICE_TRY(kernel_needs(*info, shape, arguments, context->gpu->spec, needs));
    if (stream->capture == nullptr)
        return enqueue(*stream, CU_GRAPH_NODE_TYPE_KERNEL, skip_kernel(), needs);
    const auto [grid, block, shared] = shape;
    NodeWork work = captured_kernel({handle, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared,
                                     arguments.parameters, arguments.extra, nullptr, context->handle},
                                    *info);
    work.needs = std::move(needs);
    return submit(*stream, std::move(work));
}

CUresult check_kernel_node(CUDA_KERNEL_NODE_PARAMS_v3& params, std::shared_ptr<const KernelInfo>& info) {
    // Documented: kernel and context are looked at only where there is no function.
    const Function* const given = functions.find(params.func);
    const CUcontext wanted = given != nullptr ? given->context : params.ctx;
    Context* context = nullptr;
    if (wanted == nullptr) {
        CUSLICE_TRY(current_context(context));
    } else if (context = live_context(wanted); context == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const CUfunction handle = params.func != nullptr ? params.func : reinterpret_cast<CUfunction>(params.kern);
    const LaunchShape shape{{params.gridDimX, params.gridDimY, params.gridDimZ},
                            {params.blockDimX, params.blockDimY, params.blockDimZ},
                            params.sharedMemBytes};
    const DriverLock hold;
    CUSLICE_TRY(check_launch(handle, shape, *context, {params.kernelParams, params.extra}, false));
    CUSLICE_FIND(Function, function, launchable(handle, *context, function));
    params.ctx = function->context;
    info = function->info;
    return CUDA_SUCCESS;
}

}  // namespace cuslice::fake

CUSLICE_STREAM_PAIR(cuLaunchKernel, launch_plain, function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared,
                    stream, parameters, extra)
CUSLICE_STREAM_PAIR(cuLaunchCooperativeKernel, launch_cooperative, function, grid_x, grid_y, grid_z, block_x, block_y,
                    block_z, shared, stream, parameters)
CUSLICE_STREAM_PAIR(cuLaunchKernelEx, launch_config, config, function, parameters, extra)
