#pragma once
// What the fake GPU's cuBLAS, cuBLASLt and cuDNN do on the GPU, all of it by the driver API: they see to a context,
// look whether memory is there, and launch a kernel that stands for what NVIDIA's library would compute. The fake
// driver skips that kernel and counts it, as any other; it computes nothing.

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

/// Whether the driver knows memory at each of the bytes. Without a driver it doesn't.
bool memory_is_there(const void* address, std::uint64_t bytes);

/// The compute capability of the current context's device: 90 is 9.0. 0 if there is none.
int current_architecture();

}  // namespace cuslice::fake
