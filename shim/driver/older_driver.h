// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice {

// cuGetProcAddress of the driver. One before 11.3 has none, and whoever finds ours in its place gets what its library
// exports. After the driver was loaded; thread-safe.
CUresult ask_driver(const char* name, void** function, int version, cuuint64_t flags);

}  // namespace cuslice
