#pragma once

namespace cuslice {

// Whether the code at `caller` is one of CUDA's own libraries (cuBLAS, cuDNN, NCCL, …), which carry a runtime of their
// own and so call the driver themselves. What they allocate, for handles and workspaces, is theirs and not the
// program's. Thread-safe.
bool is_cuda_library(const void* caller);

}  // namespace cuslice
