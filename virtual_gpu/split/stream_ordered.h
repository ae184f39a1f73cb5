// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice {

// A physical GPU was reset, and its pools with it.
void forget_pools_of(CUdevice physical);
// A use of a physical GPU's primary context was given up. Where it was the last one, pools that were made end with the
// context: the parts' default ones too, which a program may count on as on a driver's, and which are made anew then.
void forget_pools_if_ended(CUdevice physical);

}  // namespace cuslice
