// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/free_memory.h"

#include <cstddef>

#include "virtual_gpu/driver/table.h"

namespace cuslice {

bool free_memory(uint64_t* free, uint64_t* total) {
    size_t free_now = 0, total_now = 0;
    CUdevice device = 0;
    int shared_with_host = 0;
    if (CUSLICE_REAL(cuCtxGetDevice)(&device) == CUDA_SUCCESS &&
        CUSLICE_REAL(cuDeviceGetAttribute)(&shared_with_host, CU_DEVICE_ATTRIBUTE_INTEGRATED, device) == CUDA_SUCCESS &&
        shared_with_host)
        return false;
    if (CUSLICE_REAL(cuMemGetInfo_v2)(&free_now, &total_now) != CUDA_SUCCESS)
        return false;
    *free = free_now;
    *total = total_now;
    return true;
}

}  // namespace cuslice
