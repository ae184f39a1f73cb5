// SPDX-License-Identifier: Apache-2.0
// The driver's functions, as the program asks for them through the runtime. Built twice: with the legacy and (_ptsz)
// the per-thread default stream, which decides where the flags leave it open. 11 has no status to tell.

#include "fake/runtime/versioned/form.h"

using namespace cuslice::fake;

namespace {

cudaError_t find(const char* symbol, void** function, int version, unsigned long long flags,
                 cudaDriverEntryPointQueryResult* status) {
    if (symbol == nullptr || function == nullptr)
        return record(cudaErrorInvalidValue);
    if (kPerThreadUnit && flags == cudaEnableDefault)
        flags = cudaEnablePerThreadDefaultStream;
    return started([&] {
        CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
        const CUresult result = ask_driver(symbol, function, version, flags, &found);
        // "return cudaSuccess and set the returned funcPtr to NULL" where there is none (cuda_runtime_api.h of 13.0).
        if (status != nullptr)
            *status = static_cast<cudaDriverEntryPointQueryResult>(found);
        return result;
    });
}

}  // namespace

#if CUSLICE_CUDART_VERSION >= 12000

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* status) {
    return find(symbol, function, CUSLICE_CUDART_VERSION, flags, status);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int version,
                                             unsigned long long flags, cudaDriverEntryPointQueryResult* status) {
    return find(symbol, function, static_cast<int>(version), flags, status);
}

#else

extern "C" cudaError_t entry_point(const char*, void**, unsigned long long)
    CUSLICE_EXPORT_STREAM_AS(cudaGetDriverEntryPoint);

// cudaErrorSymbolNotFound where there is none (cuda_runtime_api.h of 11.8).
cudaError_t entry_point(const char* symbol, void** function, unsigned long long flags) {
    return find(symbol, function, CUSLICE_CUDART_VERSION, flags, nullptr);
}

#endif
