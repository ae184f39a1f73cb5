// SPDX-License-Identifier: Apache-2.0
// A library with a static runtime of its own.
#include <cuda_runtime_api.h>

__attribute__((visibility("default"))) int ask_second(void) {
    int count = 0;
    return cudaGetDeviceCount(&count);
}
