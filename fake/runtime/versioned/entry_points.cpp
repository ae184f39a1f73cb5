// SPDX-License-Identifier: Apache-2.0
// The driver's functions, as the program asks for them through the runtime. Built twice: with the legacy and (_ptsz)
// the per-thread default stream, which decides where the flags leave it open.

#include "fake/runtime/state.h"

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
        // "return cudaSuccess and set the returned funcPtr to NULL" where there is none (cuda_runtime_api.h).
        if (status != nullptr)
            *status = static_cast<cudaDriverEntryPointQueryResult>(found);
        return result;
    });
}

}  // namespace

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* status) {
    return find(symbol, function, CUSLICE_CUDART_VERSION, flags, status);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int version,
                                             unsigned long long flags, cudaDriverEntryPointQueryResult* status) {
    return find(symbol, function, static_cast<int>(version), flags, status);
}
