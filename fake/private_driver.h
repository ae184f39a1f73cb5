// SPDX-License-Identifier: Apache-2.0
#pragma once
// Functions of the fake's driver that the fake's runtime calls past the exported ones. NVIDIA's runtime has a table of
// its own, by which it could make its primary context and load its modules unseen by a library that stands before the
// driver's functions; CUDA 13.0's on an H200 does both by exported ones (docs/results/). The fake's runtime does them
// unseen, unless CUSLICE_FAKE_RUNTIME=public.

#include <cuda.h>

namespace cuslice::fake {

/// Contexts of a thread and its process, read past the API: no gate, no injected failure, nothing that is counted.
struct PrivateState {
    unsigned depth = 0;     // contexts on the calling thread's stack
    unsigned contexts = 0;  // of the process, on all GPUs
};

struct PrivateDriver {
    decltype(&::cuDevicePrimaryCtxRetain) retain_primary;
    decltype(&::cuDevicePrimaryCtxRelease_v2) release_primary;
    decltype(&::cuModuleLoadData) load_module;
    // For tests alone.
    CUresult(CUDAAPI* begin_capture)(CUstream, CUstreamCaptureMode);
    PrivateState (*state)();  // after cuInit
};

/// The name by which cuGetProcAddress gives it, whatever version is asked for. No driver of NVIDIA's has it.
inline constexpr char kPrivateDriver[] = "cuslice_fake_private_driver";

/// Tells of a device if kernels that nvcc made for other GPUs alone are taken for its own: `bool (*)(CUdevice)`.
inline constexpr char kTakesForeignCode[] = "cuslice_fake_takes_foreign_code";

/// Changes what is injected in the test's own process: `const char* (*)(const char* items)`, as change_injection()
/// of driver/injection.h.
inline constexpr char kInject[] = "cuslice_fake_inject";

}  // namespace cuslice::fake
