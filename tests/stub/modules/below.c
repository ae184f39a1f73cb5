// SPDX-License-Identifier: Apache-2.0
// A library that is linked to the driver, and calls it from a constructor already.
#include <stddef.h>

int cuInit(unsigned flags);
int cuDeviceTotalMem_v2(size_t* bytes, int device);

static size_t early;

__attribute__((constructor)) static void before_opened(void) {
    if (cuInit(0) == 0)
        cuDeviceTotalMem_v2(&early, 0);
}

// In MiB, and 1 if it is another number now.
unsigned long STUB_FUNCTION(void);
__attribute__((visibility("default"))) unsigned long STUB_FUNCTION(void) {
    size_t bytes = 0;
    return cuInit(0) == 0 && cuDeviceTotalMem_v2(&bytes, 0) == 0 && bytes == early ? bytes >> 20 : 1;
}
