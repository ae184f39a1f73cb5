// SPDX-License-Identifier: Apache-2.0
#pragma once
// Streams that the program makes without a priority: on a part that has one they get it. What the runtime asks the
// driver for is its own business, so the runtime is told.
#include "shim/runtime/devices.h"
#include "shim/runtime/runtime_shim.h"

namespace cuslice::runtime {

// That of the thread's part; false if it has none.
template <int kVersion>
bool priority_here(int* priority) {
    const SplitView* split = view();
    int here = split ? split->current() : -1;
    if (!split || (here < 0 && cudaGetDevice<kVersion>(&here) != cudaSuccess))
        return false;
    return split->priority_of(here, priority);
}

template <int kVersion>
cudaError_t cudaStreamCreate(cudaStream_t* stream) {
    int priority = 0;
    if (!priority_here<kVersion>(&priority))
        return CUSLICE_NEXT(cudaStreamCreate)(stream);
    return CUSLICE_NEEDED(cudaStreamCreateWithPriority, cudaStreamCreateWithPriority)(stream, cudaStreamDefault,
                                                                                      priority);
}

template <int kVersion>
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
    int priority = 0;
    if (!priority_here<kVersion>(&priority))
        return CUSLICE_NEXT(cudaStreamCreateWithFlags)(stream, flags);
    return CUSLICE_NEEDED(cudaStreamCreateWithPriority, cudaStreamCreateWithPriority)(stream, flags, priority);
}

}  // namespace cuslice::runtime
