// Functions and kernels: what they are, and what can be set on them.

#include "fake/driver/api_prologue.h"
#include "fake/driver/architecture.h"
#include "fake/driver/module.h"
#include "fake/driver/state.h"

using namespace cuslice::fake;

namespace {

CUresult parameter_info(const KernelInfo& info, std::size_t index, std::size_t* offset, std::size_t* size) {
    if (offset == nullptr || index >= info.parameters.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset = info.parameters[index].offset;
    if (size != nullptr) *size = info.parameters[index].size;
    return CUDA_SUCCESS;
}

CUresult set_attribute(Function& function, CUfunction_attribute attribute, int value) {
    const Gpu& gpu = *contexts.find(function.context)->gpu;
    switch (static_cast<int>(attribute)) {
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
            if (value < 0 || value > architecture_of(gpu.spec).shared_per_block_optin - function.info->shared_bytes) {
                return CUDA_ERROR_INVALID_VALUE;
            }
            function.dynamic_shared = value;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
            function.carveout = value;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
            function.non_portable_cluster = value != 0;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
            CUSLICE_UNSUPPORTED("cuFuncSetAttribute of cluster sizes");
        default:
            return CUDA_ERROR_INVALID_VALUE;  // the rest can only be read
    }
}

/// A kernel's function on a device, through the device's current context if it is that one's.
CUresult kernel_on_device(CUkernel handle, CUdevice device, Kernel*& kernel, Function*& function, Gpu*& gpu) {
    Context* context = nullptr;
    kernel = kernels.find(handle);
    if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    gpu = driver().gpu(device);
    if (gpu == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    function = nullptr;
    if (current_context(context) != CUDA_SUCCESS || context->gpu != gpu) return CUDA_SUCCESS;
    CUfunction found = nullptr;
    if (const CUresult bad = kernel_function(handle, *context, found); bad != CUDA_SUCCESS) return bad;
    function = functions.find(found);
    return CUDA_SUCCESS;
}

}  // namespace

CUresult CUDAAPI cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
    CUSLICE_ENTER(cuFuncGetAttribute)
    Context* context = nullptr;
    Function* function = nullptr;
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult bad = current_context(context); bad != CUDA_SUCCESS) return bad;
    const std::lock_guard hold(driver().lock);
    if (const CUresult bad = launchable(handle, *context, function); bad != CUDA_SUCCESS) return bad;
    const Image& image = *function->image;
    return kernel_attribute(*function->info, function, context->gpu->spec, image.is_ptx, image.capability, attribute,
                            *value);
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
    CUSLICE_ENTER(cuFuncSetAttribute)
    Context* context = nullptr;
    Function* function = nullptr;
    if (const CUresult bad = current_context(context); bad != CUDA_SUCCESS) return bad;
    const std::lock_guard hold(driver().lock);
    if (const CUresult bad = launchable(handle, *context, function); bad != CUDA_SUCCESS) return bad;
    return set_attribute(*function, attribute, value);
}

CUresult CUDAAPI cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config) {
    CUSLICE_ENTER(cuFuncSetCacheConfig)
    Function* function = functions.find(handle);
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (static_cast<unsigned>(config) > CU_FUNC_CACHE_PREFER_EQUAL) return CUDA_ERROR_INVALID_VALUE;
    function->cache = config;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig config) {
    CUSLICE_ENTER(cuFuncSetSharedMemConfig)
    if (functions.find(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return static_cast<unsigned>(config) > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_ERROR_INVALID_VALUE
                                                                                     : CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetModule(CUmodule* out, CUfunction handle) {
    CUSLICE_ENTER(cuFuncGetModule)
    const Function* function = functions.find(handle);
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    *out = function->module;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetName(const char** name, CUfunction handle) {
    CUSLICE_ENTER(cuFuncGetName)
    const Function* function = functions.find(handle);
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    *name = function->info->name.c_str();
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetParamInfo(CUfunction handle, size_t index, size_t* offset, size_t* size) {
    CUSLICE_ENTER(cuFuncGetParamInfo)
    const Function* function = functions.find(handle);
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return parameter_info(*function->info, index, offset, size);
}

CUresult CUDAAPI cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction handle) {
    CUSLICE_ENTER(cuFuncIsLoaded)
    const Function* function = functions.find(handle);
    if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    *state = function->loaded ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncLoad(CUfunction handle) {
    CUSLICE_ENTER(cuFuncLoad)
    const std::lock_guard hold(driver().lock);
    Function* function = functions.find(handle);
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return load_function(*function);
}

CUresult CUDAAPI cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel handle, CUdevice device) {
    CUSLICE_ENTER(cuKernelGetAttribute)
    Kernel* kernel = nullptr;
    Function* function = nullptr;
    Gpu* gpu = nullptr;
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard hold(driver().lock);
    if (const CUresult bad = kernel_on_device(handle, device, kernel, function, gpu); bad != CUDA_SUCCESS) return bad;
    const Library& library = *libraries.find(kernel->library);
    const auto image = image_for(library.image, gpu->spec.major * 10 + gpu->spec.minor);
    if (image == nullptr) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    const KernelInfo* info = kernel->info;  // of any part; the device's own says more
    for (const KernelInfo& one : image->kernels)
        if (one.name == kernel->info->name) info = &one;
    return kernel_attribute(*info, function, gpu->spec, image->is_ptx, image->capability, attribute, *value);
}

CUresult CUDAAPI cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle, CUdevice device) {
    CUSLICE_ENTER(cuKernelSetAttribute)
    Kernel* kernel = nullptr;
    Function* function = nullptr;
    Gpu* gpu = nullptr;
    const std::lock_guard hold(driver().lock);
    if (const CUresult bad = kernel_on_device(handle, device, kernel, function, gpu); bad != CUDA_SUCCESS) return bad;
    if (function == nullptr) CUSLICE_UNSUPPORTED("cuKernelSetAttribute for a device whose context isn't current");
    return set_attribute(*function, attribute, value);
}

CUresult CUDAAPI cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache config, CUdevice device) {
    CUSLICE_ENTER(cuKernelSetCacheConfig)
    if (kernels.find(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (driver().gpu(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    return static_cast<unsigned>(config) > CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult CUDAAPI cuKernelGetParamInfo(CUkernel handle, size_t index, size_t* offset, size_t* size) {
    CUSLICE_ENTER(cuKernelGetParamInfo)
    const Kernel* kernel = kernels.find(handle);
    if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return parameter_info(*kernel->info, index, offset, size);
}
