// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fake/runtime/registry.h"
#include "fake/runtime/state.h"

#include <cuda_runtime_api.h>

namespace cuslice::fake {

/// The driver's function for a kernel, in the current context; its module is loaded there at first use. `kernel` is
/// what a program has for it: the host address, a cudaKernel_t or the driver's own handle, which the driver then
/// judges. cudaErrorInvalidDeviceFunction: null, or registered by nobody and no handle;
/// cudaErrorNoKernelImageForDevice: none of its code is for the context's GPU. Thread-safe; the context is current.
cudaError_t function_of(const void* kernel, CUfunction* function);

/// Finds the driver's function for `kernel`, and hands it to `call`.
template <class Call>
cudaError_t with_function(const void* kernel, Call call) {
    return in_context([&] {
        CUfunction function = nullptr;
        CUSLICE_TRY(function_of(kernel, &function));
        return as_error(call(function));
    });
}

/// The compute capability (75 is 7.5) of the cubin that the context's GPU takes of a registered kernel's code. 0: it
/// takes PTX, or the kernel is a handle. Thread-safe; the context is current.
int cubin_capability_of(const void* kernel);

/// Address and size in bytes of a variable in the current context. cudaErrorInvalidSymbol: not registered. Thread-safe.
cudaError_t address_of(const void* symbol, CUdeviceptr* address, size_t* bytes);

/// Gives every managed variable of the binary its memory. Holds no lock.
cudaError_t make_managed(Binary* binary);

/// Unloads what was loaded of the binary, before its code is gone (dlclose, exit). Holds Lock.
void unload_binary(Binary* binary);

}  // namespace cuslice::fake
