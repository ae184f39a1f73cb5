// SPDX-License-Identifier: Apache-2.0
// NCCL: it opens the driver and NVML, has a static runtime and threads of its own.
#include "probe.h"

DECLARE(int, ncclGetVersion, int*);
DECLARE(int, ncclGetUniqueId, void*);
DECLARE(int, ncclCommInitAll, void**, int, const int*);
DECLARE(const char*, ncclGetErrorString, int);

int main(void) {
    int version = 0;
    char id[128];
    void* communicator = NULL;
    const int device = 0;
    SHOW(ncclGetVersion, &version);
    printf("version %d: %s\n", version, CALL(ncclGetErrorString, 1));
    SHOW(ncclGetUniqueId, id);
    SHOW(ncclCommInitAll, &communicator, 1, &device);
    return 0;
}
