// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fake/runtime/state.h"

namespace cuslice::fake {

/// A launch's configuration as the driver wants it. Shared memory must fit 32 bits.
inline CUlaunchConfig driver_config(const cudaLaunchConfig_t& config) {
    CUlaunchConfig wanted{};
    wanted.gridDimX = config.gridDim.x;
    wanted.gridDimY = config.gridDim.y;
    wanted.gridDimZ = config.gridDim.z;
    wanted.blockDimX = config.blockDim.x;
    wanted.blockDimY = config.blockDim.y;
    wanted.blockDimZ = config.blockDim.z;
    wanted.sharedMemBytes = static_cast<unsigned>(config.dynamicSmemBytes);
    wanted.hStream = config.stream;
    wanted.attrs = same_layout<CUlaunchAttribute>(config.attrs);
    wanted.numAttrs = config.numAttrs;
    return wanted;
}

}  // namespace cuslice::fake
