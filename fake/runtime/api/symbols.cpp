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
        CUSLICE_TRY(address_of(symbol, &found, &bytes));
        *pointer = reinterpret_cast<void*>(found);
        return cudaSuccess;
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
