// SPDX-License-Identifier: Apache-2.0
// Kernels of libraries: what they are on a device, and what can be set on them.

#include "fake/driver/api_prologue.h"
#include "fake/driver/module.h"
#include "fake/driver/state.h"

using namespace cuslice::fake;

namespace {

/// A kernel's function on a device, through the device's current context if it is that one's.
CUresult kernel_on_device(CUkernel handle, CUdevice device, Kernel*& kernel, Function*& function, Gpu*& gpu) {
    Context* context = nullptr;
    kernel = kernels.find(handle);
    if (kernel == nullptr)
        return CUDA_ERROR_INVALID_HANDLE;
    gpu = driver().gpu(device);
    if (gpu == nullptr)
        return CUDA_ERROR_INVALID_DEVICE;
    function = nullptr;
    if (current_context(context) != CUDA_SUCCESS || context->gpu != gpu)
        return CUDA_SUCCESS;
    CUfunction found = nullptr;
    CUSLICE_TRY(kernel_function(handle, *context, found));
    function = functions.find(found);
    return CUDA_SUCCESS;
}

}  // namespace

CUSLICE_ENTRY(cuKernelGetAttribute, value, attribute, handle, device) {
    Kernel* kernel = nullptr;
    Function* function = nullptr;
    if (value == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const DriverLock hold;
    CUSLICE_FIND(Gpu, gpu, kernel_on_device(handle, device, kernel, function, gpu));
    const Library& library = *libraries.find(kernel->library);
    const auto image = image_for(library.image, gpu->spec.capability());
    if (image == nullptr)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    auto info = kernel_named(image, kernel->info->name);
    if (info == nullptr)
        info = kernel->info;  // of another part
    return kernel_attribute(*info, function, gpu->spec, *image, attribute, *value);
}

CUSLICE_ENTRY(cuKernelSetAttribute, attribute, value, handle, device) {
    Kernel* kernel = nullptr;
    Function* function = nullptr;
    const DriverLock hold;
    CUSLICE_FIND(Gpu, gpu, kernel_on_device(handle, device, kernel, function, gpu));
    if (function == nullptr)
        CUSLICE_UNSUPPORTED("cuKernelSetAttribute for a device whose context isn't current");
    return set_attribute(*function, attribute, value);
}

CUSLICE_ENTRY(cuKernelSetCacheConfig, handle, config, device) {
    if (kernels.find(handle) == nullptr)
        return CUDA_ERROR_INVALID_HANDLE;
    if (driver().gpu(device) == nullptr)
        return CUDA_ERROR_INVALID_DEVICE;
    return static_cast<unsigned>(config) > CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuKernelGetParamInfo, handle, index, offset, size) {
    CUSLICE_FIND_IN(kernel, kernels, handle);
    return parameter_info(*kernel->info, index, offset, size);
}
