// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>

#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice {

// The primary context of a GPU, once it is known: whose allocations end with it. Who retains it besides those who were
// seen to is not known, so only the driver can tell whether it is alive.
struct PrimaryContext {
    // It is this one from now on. Its handle may be the one that another had: cuCtxGetId tells them apart.
    void is(CUcontext context);
    // True if the context alive now has come after this one. False where the driver doesn't tell (before CUDA 12).
    bool is_another() const;

    std::atomic<CUcontext> handle{nullptr};
    std::atomic<unsigned long long> id{0};  // 0: not known
    std::atomic<unsigned> retains{0};       // those that were seen
};

// True if the GPU's primary context is alive, whoever retains it. Asks the driver.
bool primary_is_active(CUdevice device);
// The same of the physical GPU behind it, whose context all its parts have.
bool physical_primary_is_active(CUdevice device);

// The GPU's primary context; null if it isn't alive. The driver tells it only to those who retain it, so it is retained
// for a moment, but for a partition's.
CUcontext active_primary(CUdevice device);

}  // namespace cuslice
