// SPDX-License-Identifier: Apache-2.0
// Start and version.

#include "fake/driver/api_prologue.h"
#include "fake/driver/initialise.h"
#include "fake/spec/machine.h"

using namespace cuslice::fake;

CUresult CUDAAPI cuInit(unsigned int flags) { return flags != 0 ? CUDA_ERROR_INVALID_VALUE : initialise(); }

CUSLICE_ENTRY_ANYTIME(cuDriverGetVersion, version) {
    if (version == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    *version = driver_spec().cuda_version();
    return CUDA_SUCCESS;
}
