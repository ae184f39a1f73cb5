// SPDX-License-Identifier: Apache-2.0
#include "fake/runtime/modules.h"

#include "fake/runtime/device_code.h"
#include "fake/runtime/ptx.h"
#include "fake/runtime/state.h"
#include "fake/runtime/version.h"

#include <cstdlib>

namespace cuslice::fake {
namespace {

bool takes_foreign_code(CUdevice device) {
    using Ask = bool(CUdevice);
    static Ask* const ask =
        reinterpret_cast<Ask*>(find_driver_function(kTakesForeignCode, CUDA_VERSION, CU_GET_PROC_ADDRESS_DEFAULT));
    return ask != nullptr && ask(device);
}

/// The part of a binary's device code that the current context's GPU takes: CUDA_ERROR_NO_BINARY_FOR_GPU where none is
/// for that GPU.
CUresult code_for_current(const void* device_code, Target* code) {
    CUdevice device = 0;
    int major = 0;
    int minor = 0;
    CUSLICE_TRY(CU(cuCtxGetDevice, 2000)(&device));
    CUSLICE_TRY(CU(cuDeviceGetAttribute, 2000)(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
    CUSLICE_TRY(CU(cuDeviceGetAttribute, 2000)(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
    const int capability = major * 10 + minor;
    if (find_code(device_code, capability, code))
        return CUDA_SUCCESS;
    *code = {false, capability};
    return takes_foreign_code(device) ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

/// Finds or loads the binary's module in the current context. Holds Lock.
CUresult module_of(Binary* binary, CUmodule* module) {
    CUcontext context = nullptr;
    unsigned long long id = 0;
    CUSLICE_TRY(CU(cuCtxGetCurrent, 4000)(&context));
    CUSLICE_TRY(CU(cuCtxGetId, 12000)(context, &id));
    for (LoadedModule* loaded = binary->loaded; loaded != nullptr; loaded = loaded->next) {
        if (loaded->context == context && loaded->context_id == id) {
            *module = loaded->module;
            return CUDA_SUCCESS;
        }
    }
    Target code;
    CUSLICE_TRY(code_for_current(binary->device_code, &code));
    auto* loaded = static_cast<LoadedModule*>(std::malloc(sizeof(LoadedModule)));
    char* ptx = loaded == nullptr ? nullptr : synthesize_ptx(*binary, code.capability);
    if (ptx == nullptr) {
        std::free(loaded);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    const PrivateDriver* own = private_driver();
    const CUresult result = own != nullptr ? own->load_module(module, ptx) : CU(cuModuleLoadData, 2000)(module, ptx);
    std::free(ptx);
    if (result != CUDA_SUCCESS) {
        std::free(loaded);
        return result;
    }
    *loaded = {binary->loaded, context, id, *module};
    binary->loaded = loaded;
    return CUDA_SUCCESS;
}

CUresult make_managed_locked(RegisteredVariable* variable) {
    if (variable->shadow == nullptr || variable->managed != 0)
        return CUDA_SUCCESS;
    CUSLICE_TRY(CU(cuMemAllocManaged, 6000)(&variable->managed, variable->size, CU_MEM_ATTACH_GLOBAL));
    *variable->shadow = reinterpret_cast<void*>(variable->managed);
    CU(cuCtxGetCurrent, 4000)(&variable->owner);
    return CUDA_SUCCESS;
}

}  // namespace

cudaError_t function_of(const void* kernel, CUfunction* function) {
    Lock held;
    const RegisteredKernel* const found = find_kernel(kernel);
    if (found == nullptr) {
        // From CUDA 12 on a kernel of cudaLibraryGetKernel or of the driver API may stand here. The driver knows its
        // handles and refuses any other value.
        if (runtime_version() < 12000)
            return cudaErrorInvalidDeviceFunction;
        *function = static_cast<CUfunction>(const_cast<void*>(kernel));
        int ignored = 0;
        const bool known = kernel != nullptr && CU(cuFuncGetAttribute, 2020)(&ignored, CU_FUNC_ATTRIBUTE_NUM_REGS,
                                                                             *function) == CUDA_SUCCESS;
        return known ? cudaSuccess : cudaErrorInvalidDeviceFunction;
    }
    CUmodule module = nullptr;
    CUSLICE_TRY(as_error(module_of(found->binary, &module)));
    return as_error(CU(cuModuleGetFunction, 2000)(function, module, found->name));
}

int cubin_capability_of(const void* kernel) {
    Lock held;
    const RegisteredKernel* const found = find_kernel(kernel);
    Target code;
    if (found == nullptr || code_for_current(found->binary->device_code, &code) != CUDA_SUCCESS)
        return 0;
    return code.ptx ? 0 : code.capability;
}

cudaError_t address_of(const void* symbol, CUdeviceptr* address, size_t* bytes) {
    Lock held;
    RegisteredVariable* const variable = find_variable(symbol);
    if (variable == nullptr)
        return cudaErrorInvalidSymbol;
    if (variable->shadow != nullptr) {
        const CUresult result = make_managed_locked(variable);
        *address = variable->managed;
        *bytes = variable->size;
        return as_error(result);
    }
    CUmodule module = nullptr;
    CUSLICE_TRY(as_error(module_of(variable->binary, &module)));
    return as_error(CU(cuModuleGetGlobal, 3020)(address, bytes, module, variable->name));
}

cudaError_t make_managed(Binary* binary) {
    Lock held;
    for (RegisteredVariable* variable = binary->variables; variable != nullptr; variable = variable->next) {
        CUSLICE_TRY(as_error(make_managed_locked(variable)));
    }
    return cudaSuccess;
}

void unload_binary(Binary* binary) {
    for (LoadedModule* loaded = binary->loaded; loaded != nullptr; loaded = loaded->next) {
        unsigned long long id = 0;
        // A context that is gone took its modules with it.
        if (CU(cuCtxGetId, 12000)(loaded->context, &id) != CUDA_SUCCESS || id != loaded->context_id)
            continue;
        if (CU(cuCtxPushCurrent, 4000)(loaded->context) == CUDA_SUCCESS) {
            CU(cuModuleUnload, 2000)(loaded->module);
            CUcontext popped = nullptr;
            CU(cuCtxPopCurrent, 4000)(&popped);
        }
    }
    for (RegisteredVariable* variable = binary->variables; variable != nullptr; variable = variable->next) {
        if (variable->managed != 0)
            CU(cuMemFree, 3020)(variable->managed);
    }
}

}  // namespace cuslice::fake
