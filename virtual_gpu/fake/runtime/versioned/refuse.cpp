#include "virtual_gpu/fake/runtime/versioned/refuse.h"

#include "virtual_gpu/fake/runtime/report.h"
#include "virtual_gpu/fake/runtime/state.h"

int cuslice::fake::refuse(const char* name, bool said) {
    if (!said) {
        say("fake CUDA runtime %d: %s is not supported; it fails with cudaErrorNotSupported (801)",
            CUSLICE_CUDART_VERSION / 1000, name);
    }
    return record(cudaErrorNotSupported);
}
