// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/gpu_state.h"

namespace cuslice {

constinit GpuState the_gpu_state;

}  // namespace cuslice
