// SPDX-License-Identifier: Apache-2.0
#pragma once
// The driver's start: what the fake GPU's variables say, and the end of the process.

#include "fake/driver/cuda_api.h"

namespace cuslice::fake {

/// cuInit: reads CUSLICE_FAKE and the fake GPU's other variables, CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER, once.
CUresult initialise();

}  // namespace cuslice::fake
