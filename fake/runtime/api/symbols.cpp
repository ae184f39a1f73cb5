// SPDX-License-Identifier: Apache-2.0
// __device__, __constant__ and __managed__ variables. Copies to and from them: copy.cpp.

#include "fake/runtime/modules.h"
#include "fake/runtime/state.h"

using namespace cuslice::fake;

cudaError_t cudaGetSymbolAddress(void** pointer, const void* symbol) {
    if (pointer == nullptr)
        return record(cudaErrorInvalidValue);
    return in_context([&] {
        CUdeviceptr found = 0;
        size_t bytes = 0;
        const cudaError_t error = address_of(symbol, &found, &bytes);
        if (error == cudaSuccess)
            *pointer = reinterpret_cast<void*>(found);
        return error;
    });
}

cudaError_t cudaGetSymbolSize(size_t* size, const void* symbol) {
    if (size == nullptr)
        return record(cudaErrorInvalidValue);
    return in_context([&] {
        CUdeviceptr found = 0;
        return address_of(symbol, &found, size);
    });
}
