// SPDX-License-Identifier: Apache-2.0
#pragma once
// The driver's functions, asked for through the runtime: the program's view of them, not the runtime's.
#include "shim/runtime/runtime_shim.h"

namespace cuslice::runtime {

inline void* of_driver_shim(const char* name, int version, cuuint64_t flags) {
    void* found = nullptr;
    CUdriverProcAddressQueryResult known = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    const CUresult result = driver_is_before(12000) ? cuGetProcAddress(name, &found, version, flags)
                                                    : cuGetProcAddress_v2(name, &found, version, flags, &known);
    return result == CUDA_SUCCESS ? found : nullptr;
}

// The runtime says whether there is one, and the driver shim which.
inline void exchange(const char* name, void** function, int version, cuuint64_t flags) {
    if (!view() || !function || !*function)
        return;
    if (void* const ours = of_driver_shim(name, version, flags))
        *function = ours;
}

template <int kVersion>
int runtime_says() {
    int version = loaded_version(kVersion) * 1000;
    CUSLICE_NEEDED(cudaRuntimeGetVersion, cudaRuntimeGetVersion)(&version);
    return version;
}

#define CUSLICE_ENTRY_POINT(symbol, default_flags)                                                         \
    template <int kVersion>                                                                                \
    cudaError_t symbol(const char* name, void** function, unsigned long long flags,                        \
                       cudaDriverEntryPointQueryResult* status) {                                          \
        const cudaError_t result = CUSLICE_NEXT(symbol)(name, function, flags, status);                    \
        if (result == cudaSuccess)                                                                         \
            exchange(name, function, runtime_says<kVersion>(), flags ? flags : cuuint64_t{default_flags}); \
        return result;                                                                                     \
    }
CUSLICE_ENTRY_POINT(cudaGetDriverEntryPoint, cudaEnableLegacyStream)
CUSLICE_ENTRY_POINT(cudaGetDriverEntryPoint_ptsz, cudaEnablePerThreadDefaultStream)
#undef CUSLICE_ENTRY_POINT

// 11 has no status to tell.
#define CUSLICE_ENTRY_POINT(symbol, default_flags)                                                   \
    inline cudaError_t symbol##_11(const char* name, void** function, unsigned long long flags) {    \
        const cudaError_t result = CUSLICE_NEXT_FORM(symbol, 11)(name, function, flags);             \
        if (result == cudaSuccess)                                                                   \
            exchange(name, function, runtime_says<11>(), flags ? flags : cuuint64_t{default_flags}); \
        return result;                                                                               \
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
