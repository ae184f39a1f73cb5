#pragma once
#include "policy/base/mutex.h"
#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice {

// Over which pools the virtual GPUs have. Held over a call of the driver.
Mutex& virtual_pools_mutex();

// A physical GPU was reset, and its pools with it.
void forget_pools_of(CUdevice physical);
// A use of a physical GPU's primary context was given up. Where it was the last one, pools that were made end with the
// context: the parts' default ones too, which a program may count on as on a driver's, and which are made anew then.
void forget_pools_if_ended(CUdevice physical);

}  // namespace cuslice
