// SPDX-License-Identifier: Apache-2.0
#pragma once
// The driver's functions, asked for through the runtime: the program's view of them, not the runtime's.
#include "shim/runtime/runtime_shim.h"

namespace cuslice::runtime {

// The runtime says whether there is one, and the driver shim which.
inline void exchange(const char* name, void** function, int version, cuuint64_t flags) {
    void* ours = nullptr;
    CUdriverProcAddressQueryResult known = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (view() && function && *function && cuGetProcAddress_v2(name, &ours, version, flags, &known) == CUDA_SUCCESS &&
        ours)
        *function = ours;
}

inline int version_of_runtime(int version) { return loaded_version(version) * 1000; }

#define CUSLICE_ENTRY_POINT(symbol, default_flags)                                                     \
    template <int kVersion>                                                                            \
    cudaError_t symbol(const char* name, void** function, unsigned long long flags,                    \
                       cudaDriverEntryPointQueryResult* status) {                                      \
        const cudaError_t result = CUSLICE_NEXT(symbol)(name, function, flags, status);                \
        int version = version_of_runtime(kVersion);                                                    \
        if (result == cudaSuccess)                                                                     \
            CUSLICE_NEEDED(cudaRuntimeGetVersion, cudaRuntimeGetVersion)(&version);                    \
        if (result == cudaSuccess)                                                                     \
            exchange(name, function, version, flags ? flags : static_cast<cuuint64_t>(default_flags)); \
        return result;                                                                                 \
    }
CUSLICE_ENTRY_POINT(cudaGetDriverEntryPoint, cudaEnableLegacyStream)
CUSLICE_ENTRY_POINT(cudaGetDriverEntryPoint_ptsz, cudaEnablePerThreadDefaultStream)
#undef CUSLICE_ENTRY_POINT

#define CUSLICE_ENTRY_POINT(symbol, default_flags)                                                    \
    template <int kVersion>                                                                           \
    cudaError_t symbol(const char* name, void** function, unsigned version, unsigned long long flags, \
                       cudaDriverEntryPointQueryResult* status) {                                     \
        const cudaError_t result = CUSLICE_NEXT(symbol)(name, function, version, flags, status);      \
        if (result == cudaSuccess)                                                                    \
            exchange(name, function, static_cast<int>(version),                                       \
                     flags ? flags : static_cast<cuuint64_t>(default_flags));                         \
        return result;                                                                                \
    }
CUSLICE_ENTRY_POINT(cudaGetDriverEntryPointByVersion, cudaEnableLegacyStream)
CUSLICE_ENTRY_POINT(cudaGetDriverEntryPointByVersion_ptsz, cudaEnablePerThreadDefaultStream)
#undef CUSLICE_ENTRY_POINT

}  // namespace cuslice::runtime
