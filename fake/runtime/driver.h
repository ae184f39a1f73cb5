// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fake/private_driver.h"

#include <cuda.h>
#include <cudaProfiler.h>
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>
#include <algorithm>
#include <atomic>
#include <cstddef>

namespace cuslice::fake {

/// Opens libcuda.so.1 as NVIDIA's runtimes do (look_ups.cpp, look_ups_11.cpp). The first question of 12 and 13 is the
/// empty name with version 0, and that of 11 "cuGetProcAddress" (by these a driver or a shim knows a runtime). False:
/// there is no driver, or for 12 and 13 one without cuGetProcAddress_v2. Not thread-safe; start() calls it once.
bool open_driver();

/// open_driver() has found a driver, be it one that start() then refused.
bool driver_is_open();

/// The driver's function `name` in the form that CUDA `version` (12020 is 12.2) has, with `flags` for the default
/// stream. Null: the driver has none. Thread-safe after open_driver().
void* find_driver_function(const char* name, int version, cuuint64_t flags);

/// The driver's own look-up, for what the program asks of it through the runtime. For 11, whose driver has no status to
/// tell: CUDA_ERROR_NOT_FOUND where there is no such function.
CUresult ask_driver(const char* name, void** function, int version, cuuint64_t flags,
                    CUdriverProcAddressQueryResult* status);

/// The fake driver's own way in (private_driver.h); null where the driver is another one, or
/// CUSLICE_FAKE_RUNTIME=public is set: then its exported functions serve. For whoever holds Lock (state.h).
const PrivateDriver* private_driver();

/// Says once for this look-up that the driver has no such function.
void log_missing(const char* name, int version);

template <size_t Size>
struct FunctionName {
    char text[Size];
    consteval FunctionName(const char (&name)[Size]) { std::copy_n(name, Size, text); }
};

/// One function of the driver, looked up at its first call. The look-up can be repeated by threads that race: all get
/// the same answer.
template <FunctionName Name, class Function, int Version, cuuint64_t Flags>
struct DriverFunction;
template <FunctionName Name, class... Parameters, int Version, cuuint64_t Flags>
struct DriverFunction<Name, CUresult (*)(Parameters...), Version, Flags> {
    using Function = CUresult (*)(Parameters...);
    CUresult operator()(Parameters... arguments) const {
        Function function = found.load(std::memory_order_acquire);
        if (function == nullptr) {
            function = reinterpret_cast<Function>(find_driver_function(Name.text, Version, Flags));
            if (function == nullptr) {
                if (!said.exchange(true))
                    log_missing(Name.text, Version);
                return CUDA_ERROR_NOT_SUPPORTED;
            }
            found.store(function, std::memory_order_release);
        }
        return function(arguments...);
    }
    static constinit inline std::atomic<Function> found{nullptr};
    static constinit inline std::atomic<bool> said{false};
};

// The default stream of this translation unit: those that are compiled with CUDA_API_PER_THREAD_DEFAULT_STREAM define
// the _ptsz and _ptds names (NVIDIA's header renames the definitions) and ask the driver for its per-thread forms,
// which exist from CUDA 7.0 on.
#ifdef __CUDA_API_PER_THREAD_DEFAULT_STREAM
inline constexpr bool kPerThreadUnit = true;
#else
inline constexpr bool kPerThreadUnit = false;
#endif

template <FunctionName Name, class Function, int Version>
using PlainFunction = DriverFunction<Name, Function, Version, CU_GET_PROC_ADDRESS_DEFAULT>;

/// A driver function that works on a stream: its legacy or per-thread form, as the translation unit is built.
template <FunctionName Name, class Function, int Version>
using StreamFunction =
    DriverFunction<Name, Function, kPerThreadUnit ? std::max(Version, 7000) : Version,
                   kPerThreadUnit ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_DEFAULT>;

/// CU(cuMemAlloc, 3020)(&pointer, bytes): the driver's cuMemAlloc in the form of CUDA 3.2, with the signature that
/// cudaTypedefs.h gives that form.
#define CU(name, version) (::cuslice::fake::PlainFunction<#name, PFN_##name##_v##version, version>{})

/// The same for a function that works on a stream.
#define CU_STREAM(name, version) (::cuslice::fake::StreamFunction<#name, PFN_##name##_v##version, version>{})

}  // namespace cuslice::fake
