// SPDX-License-Identifier: Apache-2.0
#pragma once
// GPU work of the fake's cuBLAS, cuBLASLt and cuDNN, all of it through the driver API: they make a context current,
// check that memory is there, and launch a kernel in place of the one that NVIDIA's library would compute with. The
// fake driver skips that kernel and counts it, as any other; it computes nothing.

#include <cuda.h>
#include <cstdint>

namespace cuslice::fake {

/// Loads the driver (once a process) and makes a context current for this thread if none is, as the CUDA runtime inside
/// NVIDIA's libraries does: the primary one of device 0. Thread-safe, as all here is.
CUresult enter_context();

/// enter_context(), and loads the kernel there: the context is charged for a module, once for each library.
CUresult load_kernel();

/// Launches the kernel in the stream, in the current context: it is skipped in the stream's order, or becomes a node of
/// what the stream captures. CUDA_ERROR_NOT_SUPPORTED with CUSLICE_FAKE_KERNELS=error.
CUresult launch_kernel(CUstream stream);

/// True if the driver knows memory at each of the bytes; false without a driver.
bool memory_is_there(const void* address, uint64_t bytes);

/// The compute capability of the current context's device: 90 is 9.0. 0 if there is none.
int current_architecture();

}  // namespace cuslice::fake
