#pragma once
#include "policy/mutex.h"
#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice {

// Over which pools the virtual GPUs have. Held over a call of the driver.
Mutex& virtual_pools_mutex();

// A physical GPU was reset, and its pools with it.
void forget_pools_of(CUdevice physical);

}  // namespace cuslice
