// SPDX-License-Identifier: Apache-2.0
// Versions of this library and of the driver.

#include "fake/runtime/state.h"
#include "fake/runtime/version.h"

using namespace cuslice::fake;

int cuslice::fake::runtime_version() { return CUSLICE_CUDART_VERSION; }

cudaError_t cudaRuntimeGetVersion(int* version) {
    if (version == nullptr)
        return record(cudaErrorInvalidValue);
    *version = CUSLICE_CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
    if (version == nullptr)
        return record(cudaErrorInvalidValue);
    // "If no driver is installed, then 0 is returned" (cuda_runtime_api.h), with success. A driver that is too old, or
    // that has no GPU, has a version all the same.
    *version = 0;
    start();
    return driver_is_open() ? record(as_error(CU(cuDriverGetVersion, 2020)(version))) : cudaSuccess;
}
