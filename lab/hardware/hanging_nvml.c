// SPDX-License-Identifier: Apache-2.0
/* An NVML whose start never returns in a process under cuslice, and natively fails as NVIDIA's does without a driver.
 * For the test of what gpu_check.sh does when the first look at a machine hangs. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static int start(void) {
    const char* preloaded = getenv("LD_PRELOAD");
    while (preloaded && strstr(preloaded, "libcuslice"))
        pause();
    return 9; /* NVML_ERROR_DRIVER_NOT_LOADED */
}

EXPORT int nvmlInit_v2(void) { return start(); }
EXPORT int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    return start();
}
