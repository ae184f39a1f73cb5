// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "virtual_gpu/gpu/virtual_gpu.h"

namespace cuslice {

// Every segment and block of a GPU's caches, as one line of JSON after "cuslice: ", in the file of the log; for those
// who asked for it (log = debug:FILE).
void dump_caches(const VirtualGpu& gpu);

}  // namespace cuslice
