// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace cuslice {

// True if the code at `caller` belongs to one of CUDA's own libraries (cuBLAS, cuDNN, NCCL, …), which carry a runtime
// of their own and so call the driver themselves. Their allocations, for handles and workspaces, are theirs and not
// the program's. Thread-safe.
bool is_cuda_library(const void* caller);

}  // namespace cuslice
