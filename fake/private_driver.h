#pragma once
// What the fake's runtime asks of the fake's driver past its exported functions. NVIDIA's runtime has a table of its
// own for that, and is believed to make its primary context and to load its modules through it, where nobody sees it
// who stands before the driver's functions. So the fake's runtime does the same, unless CUSLICE_FAKE_RUNTIME=public.

#include <cuda.h>

namespace cuslice::fake {

struct PrivateDriver {
    decltype(&::cuDevicePrimaryCtxRetain) retain_primary;
    decltype(&::cuDevicePrimaryCtxRelease_v2) release_primary;
    decltype(&::cuModuleLoadData) load_module;
    CUresult(CUDAAPI* begin_capture)(CUstream, CUstreamCaptureMode);  // for tests alone
};

/// The name by which cuGetProcAddress gives it, whatever version is asked for. No driver of NVIDIA's has it.
inline constexpr char kPrivateDriver[] = "cuslice_fake_private_driver";

}  // namespace cuslice::fake
