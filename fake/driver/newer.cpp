// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/newer.h"

#include <cstdlib>
#include <cstring>

#include "fake/driver/cuda_api.h"
#include "fake/spec/machine.h"
#include "fake/try.h"

namespace {

CUresult check_newer(unsigned long long flags) {
    if (!cuslice::fake::newer_driver())
        return CUDA_ERROR_NOT_SUPPORTED;
    return flags != 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

CUresult cuFakeNewerDriverFunction(int* effect) {
    CUSLICE_TRY(check_newer(0));
    if (effect != nullptr)
        *effect = 20130;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v3(CUdeviceptr* out, size_t bytes, unsigned long long flags) {
    CUSLICE_TRY(check_newer(flags));
    return cuMemAlloc_v2(out, bytes);
}

CUresult cuMemcpyDtoD_v3(CUdeviceptr to, CUdeviceptr from, size_t bytes, unsigned long long flags) {
    CUSLICE_TRY(check_newer(flags));
    return cuMemcpyDtoD_v2(to, from, bytes);
}

CUresult cuLaunchFakeKernel(CUfunction kernel, CUstream stream) {
    CUSLICE_TRY(check_newer(0));
    return cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
}

CUresult cuStreamBeginFakeRecapture(CUstream stream, CUstreamCaptureMode mode) {
    CUSLICE_TRY(check_newer(0));
    return cuStreamBeginCapture_v2(stream, mode);
}
}
#pragma GCC visibility pop

namespace cuslice::fake {

bool newer_driver() {
    const char* newer = std::getenv("CUSLICE_FAKE_NEWER");
    constexpr int kKnownHere = 13000;  // what functions.def is made from
    return (newer != nullptr && std::strcmp(newer, "1") == 0) || driver_spec().cuda_version() > kKnownHere;
}

std::span<const Exported> newer_functions() {
    static const Exported rows[] = {
        {"cuFakeNewerDriverFunction", "cuFakeNewerDriverFunction", 13000, false,
         reinterpret_cast<void*>(&cuFakeNewerDriverFunction)},
        {"cuMemAlloc_v3", "cuMemAlloc", 14000, false, reinterpret_cast<void*>(&cuMemAlloc_v3)},
        {"cuStreamBeginFakeRecapture", "cuStreamBeginFakeRecapture", 14000, false,
         reinterpret_cast<void*>(&cuStreamBeginFakeRecapture)},
        {"cuLaunchFakeKernel", "cuLaunchFakeKernel", 14000, false, reinterpret_cast<void*>(&cuLaunchFakeKernel)},
        {"cuMemcpyDtoD_v3", "cuMemcpyDtoD", 14000, false, reinterpret_cast<void*>(&cuMemcpyDtoD_v3)},
    };
    return rows;
}

}  // namespace cuslice::fake
