// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "shim/driver/copy_gpus.h"
#include "shim/entry.h"
#include "virtual_gpu/driver/table.h"

namespace cuslice {

// The functions whose route is `checked`: what they are given is looked at first where memory is cached, and elsewhere
// they pass through. What is exported is a stub, which jumps to the one or the other; so where nothing is cached, a
// checked function costs what one costs that passes through.

template <Function kFunction, auto kInBounds, typename... Arguments>
CUresult CUDAAPI checked_call(Arguments... arguments) {
    if (process().caches_anything()) {
        const CopyGpus gpus(stream_among(arguments...));
        if (!kInBounds(arguments...))
            return CUDA_ERROR_INVALID_VALUE;
    }
    return detail::RealFunction<kFunction, Arguments...>{}(arguments...);
}

template <Function kFunction, auto kInBounds, typename... Arguments>
void* checked_call_of(CUresult(CUDAAPI*)(Arguments...)) {
    return reinterpret_cast<void*>(&checked_call<kFunction, kInBounds, Arguments...>);
}

}  // namespace cuslice

// In namespace cuslice. `in_bounds` takes the function's arguments, of which it need not name the last ones.
#define CUSLICE_CHECKED(symbol, in_bounds)                                                              \
    void* checked_##symbol() {                                                                          \
        return checked_call_of<Function::symbol, in_bounds>(static_cast<decltype(&::symbol)>(nullptr)); \
    }
