// SPDX-License-Identifier: Apache-2.0
#pragma once
// Prologue of every function: checks that it may be called, and injects failures. While nothing is in the way, it
// costs one load and one branch.

#include <atomic>

#include "fake/driver/cuda_api.h"
#include "fake/driver/find.h"
#include "fake/driver/gate.h"
#include "virtual_gpu/driver/parameters.h"

namespace cuslice::fake {

/// The slow half of the gate. `anytime`: the function works before cuInit too.
CUresult pass_gate(const char* name, bool anytime);

/// Answers for a function that this driver does not have: says its name once, returns CUDA_ERROR_NOT_SUPPORTED.
CUresult unsupported(const char* name, std::atomic<bool>& said);

}  // namespace cuslice::fake

/// Defines a function of the driver's: CUSLICE_ENTRY(cuMemFree_v2, address) { ... }. The body runs once the call may be
/// made; the parameters' types are those of cuda.h.
#define CUSLICE_ENTRY(name, ...) CUSLICE_ENTRY_BEHIND(false, name, __VA_ARGS__)
/// Defines a function's oldest form and its form _v2, which do the same: CUSLICE_ENTRY_PAIR(cuMemFree, free, address).
#define CUSLICE_ENTRY_PAIR(name, function, ...)                        \
    CUSLICE_ENTRY(name, __VA_ARGS__) { return function(__VA_ARGS__); } \
    CUSLICE_ENTRY(name##_v2, __VA_ARGS__) { return function(__VA_ARGS__); }
/// As CUSLICE_ENTRY, of a function that works before cuInit.
#define CUSLICE_ENTRY_ANYTIME(name, ...) CUSLICE_ENTRY_BEHIND(true, name, __VA_ARGS__)

#define CUSLICE_ENTRY_BEHIND(anytime, name, ...)                                       \
    static CUresult entered_##name(CUSLICE_PARAMETERS(name, __VA_ARGS__));             \
    CUresult CUDAAPI name(CUSLICE_PARAMETERS(name, __VA_ARGS__)) {                     \
        if (::cuslice::fake::gate.load(std::memory_order_relaxed) != 0) [[unlikely]] { \
            const CUresult refused = ::cuslice::fake::pass_gate(#name, anytime);       \
            if (refused != CUDA_SUCCESS)                                               \
                return refused;                                                        \
        }                                                                              \
        return entered_##name(__VA_ARGS__);                                            \
    }                                                                                  \
    [[gnu::always_inline]] inline CUresult entered_##name(CUSLICE_PARAMETERS(name, __VA_ARGS__))

/// Answers an argument or a flag that this driver's form of a function does not have.
#define CUSLICE_UNSUPPORTED(what)                           \
    do {                                                    \
        static std::atomic<bool> said_it{false};            \
        return ::cuslice::fake::unsupported(what, said_it); \
    } while (false)
