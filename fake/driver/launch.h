// SPDX-License-Identifier: Apache-2.0
#pragma once
// Launches of kernels, whichever way they are asked for.

#include "fake/driver/cuda_api.h"
#include "fake/driver/stream.h"

namespace cuslice::fake {

struct LaunchShape {
    unsigned grid[3], block[3], shared;
};

struct LaunchArguments {
    void** parameters = nullptr;  // one pointer for each, or null
    void** extra = nullptr;       // or one buffer for all
    bool said_before = false;     // by cuParamSet…: nothing to check
};

/// Checks a launch as a driver does, puts the function's code on the device, and has the stream skip the kernel.
/// Takes the driver's lock itself.
CUresult launch(CUfunction function, const LaunchShape& shape, CUstream stream, const LaunchArguments& arguments,
                bool cooperative, DefaultStream form);

}  // namespace cuslice::fake
