#pragma once
#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice {

// The virtual GPU that a stream belongs to; of the default streams, and of one that others have made, the current one.
// -1 if there is none.
int device_of(CUstream stream);

}  // namespace cuslice
