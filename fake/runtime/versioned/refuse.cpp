// SPDX-License-Identifier: Apache-2.0
#include "fake/runtime/versioned/refuse.h"

#include "fake/runtime/report.h"
#include "fake/runtime/state.h"

int cuslice::fake::refuse(const char* name, bool said) {
    if (!said) {
        log_line("fake CUDA runtime %d: %s is not supported; it fails with cudaErrorNotSupported (801)",
                 CUSLICE_CUDART_VERSION / 1000, name);
    }
    return record(cudaErrorNotSupported);
}
