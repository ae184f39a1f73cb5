// SPDX-License-Identifier: Apache-2.0
// cuDNN: it opens its parts and the runtime's functions by itself.
#include "probe.h"

DECLARE(size_t, cudnnGetVersion, void);
DECLARE(size_t, cudnnGetCudartVersion, void);
DECLARE(int, cudnnCreate, void**);

int main(void) {
    void* handle = NULL;
    printf("version %zu, runtime %zu\n", CALL(cudnnGetVersion), CALL(cudnnGetCudartVersion));
    fflush(stdout);
    SHOW(cudnnCreate, &handle);
    SHOW(cudnnCreate, &handle);
    printf("handle %d\n", handle != NULL);
    return 0;
}
