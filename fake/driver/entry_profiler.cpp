// SPDX-License-Identifier: Apache-2.0
// The profiler, of which there is none.

#include "fake/driver/api_prologue.h"

using namespace cuslice::fake;

CUSLICE_ENTRY(cuProfilerStart) {
    return CUDA_SUCCESS;  // documented to succeed when no profiler is attached
}

CUSLICE_ENTRY(cuProfilerStop) { return CUDA_SUCCESS; }
