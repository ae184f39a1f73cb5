// SPDX-License-Identifier: Apache-2.0
// cuBLAS: it carries a static runtime, which looks for the driver by itself.
#include "probe.h"

DECLARE(int, cublasCreate_v2, void**);
DECLARE(int, cublasGetProperty, int, int*);
DECLARE(size_t, cublasGetCudartVersion, void);

int main(void) {
    void* handle = NULL;
    int major = 0;
    SHOW(cublasGetProperty, 0, &major);
    printf("major %d, runtime %zu\n", major, CALL(cublasGetCudartVersion));
    SHOW(cublasCreate_v2, &handle);
    SHOW(cublasCreate_v2, &handle);
    printf("handle %d\n", handle != NULL);
    return 0;
}
