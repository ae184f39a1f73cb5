// SPDX-License-Identifier: Apache-2.0
// A library that allocates for itself, as CUDA's own do: they carry a runtime, and so call the driver from their own
// code. Built under the soname of one of them.
#include <dlfcn.h>

#include "virtual_gpu/driver/cuda_api.h"

extern "C" __attribute__((visibility("default"))) CUresult made_up_workspace(CUdeviceptr* block, size_t bytes) {
    static auto* const allocate =
        reinterpret_cast<decltype(&cuMemAlloc_v2)>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemAlloc_v2"));
    const CUresult result = allocate(block, bytes);
    // Not in tail position: the call is to return into this library.
    return result == CUDA_SUCCESS && !*block ? CUDA_ERROR_UNKNOWN : result;
}
