// SPDX-License-Identifier: Apache-2.0
// Functions: what they are, and what can be set on them.

#include "fake/driver/api_prologue.h"
#include "fake/driver/architecture.h"
#include "fake/driver/module.h"
#include "fake/driver/state.h"

using namespace cuslice::fake;

namespace cuslice::fake {

CUresult parameter_info(const KernelInfo& info, size_t index, size_t* offset, size_t* size) {
    if (offset == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    if (!info.parameters_known)
        CUSLICE_UNSUPPORTED("looking into the parameters of a kernel that can't be read");
    if (index >= info.parameters.size())
        return CUDA_ERROR_INVALID_VALUE;
    *offset = info.parameters[index].offset;
    if (size != nullptr)
        *size = info.parameters[index].size;
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
            if (value < -1 || value > 100)
                return CUDA_ERROR_INVALID_VALUE;
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

}  // namespace cuslice::fake

CUSLICE_ENTRY(cuFuncGetAttribute, value, attribute, handle) {
    if (value == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_CURRENT(context);
    const DriverLock hold;
    CUSLICE_FIND(Function, function, launchable(handle, *context, function));
    return kernel_attribute(*function->info, function, context->gpu->spec, *function->image, attribute, *value);
}

CUSLICE_ENTRY(cuFuncSetAttribute, handle, attribute, value) {
    CUSLICE_FIND_CURRENT(context);
    const DriverLock hold;
    CUSLICE_FIND(Function, function, launchable(handle, *context, function));
    return set_attribute(*function, attribute, value);
}

CUSLICE_ENTRY(cuFuncSetCacheConfig, handle, config) {
    CUSLICE_FIND_IN(function, functions, handle);
    if (static_cast<unsigned>(config) > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    function->cache = config;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuFuncSetSharedMemConfig, handle, config) {
    if (functions.find(handle) == nullptr)
        return CUDA_ERROR_INVALID_HANDLE;
    return static_cast<unsigned>(config) > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_ERROR_INVALID_VALUE
                                                                                     : CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuFuncGetModule, out, handle) {
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_IN(function, functions, handle);
    *out = function->module;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuFuncGetName, name, handle) {
    if (name == nullptr || handle == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_IN(function, functions, handle);
    *name = function->info->name.c_str();
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuFuncGetParamInfo, handle, index, offset, size) {
    CUSLICE_FIND_IN(function, functions, handle);
    return parameter_info(*function->info, index, offset, size);
}

CUSLICE_ENTRY(cuFuncIsLoaded, state, handle) {
    if (state == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_IN(function, functions, handle);
    *state = function->loaded ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuFuncLoad, handle) {
    const DriverLock hold;
    CUSLICE_FIND_IN(function, functions, handle);
    return load_function(*function);
}
