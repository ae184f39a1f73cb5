// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "shim/entry.h"
#include "virtual_gpu/driver/parameters.h"
#include "virtual_gpu/driver/table.h"

// Defines the hook of a driver function: CUSLICE_HOOK(cuMemFree_v2, address) { ... }. The parameters' types are those
// of cuda.h. The body runs once settings and driver are loaded; without a driver the hook answers that there is none.
// The first call is apart, so that the others save no register for it.
#define CUSLICE_HOOK(symbol, ...)                                                                                  \
    [[gnu::cold, gnu::noinline]] static CUresult first_call_of_##symbol(CUSLICE_PARAMETERS(symbol, __VA_ARGS__)) { \
        return ready() == Readiness::ready ? symbol(__VA_ARGS__) : unavailable();                                  \
    }                                                                                                              \
    CUSLICE_HOOK_BEHIND(if (process().readiness() != Readiness::ready)                                             \
                            [[unlikely]] return first_call_of_##symbol(__VA_ARGS__);                               \
                        , symbol, __VA_ARGS__)

// For the hooks that have an answer of their own without a driver, and so look themselves.
#define CUSLICE_HOOK_ANYTIME(symbol, ...) CUSLICE_HOOK_BEHIND(, symbol, __VA_ARGS__)

// The hook of one of several forms: `function` is given the driver's own function and the arguments.
#define CUSLICE_HOOK_FORM(symbol, function, ...) \
    CUSLICE_HOOK(symbol, __VA_ARGS__) { return function(CUSLICE_REAL(symbol), __VA_ARGS__); }

#define CUSLICE_HOOK_BEHIND(check, symbol, ...)                                \
    static CUresult hooked_##symbol(CUSLICE_PARAMETERS(symbol, __VA_ARGS__));  \
    extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI symbol( \
        CUSLICE_PARAMETERS(symbol, __VA_ARGS__)) {                             \
        check return hooked_##symbol(__VA_ARGS__);                             \
    }                                                                          \
    [[gnu::always_inline]] inline CUresult hooked_##symbol(CUSLICE_PARAMETERS(symbol, __VA_ARGS__))
