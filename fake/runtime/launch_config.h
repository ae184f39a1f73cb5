// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fake/runtime/state.h"

namespace cuslice::fake {

/// Sets the grid and the block of a launch as the driver's structures have them.
template <class Launch>
void set_shape(Launch& launch, dim3 grid, dim3 block) {
    launch.gridDimX = grid.x;
    launch.gridDimY = grid.y;
    launch.gridDimZ = grid.z;
    launch.blockDimX = block.x;
    launch.blockDimY = block.y;
    launch.blockDimZ = block.z;
}

/// A launch's configuration as the driver wants it. Shared memory must fit 32 bits.
inline CUlaunchConfig driver_config(const cudaLaunchConfig_t& config) {
    CUlaunchConfig wanted{};
    set_shape(wanted, config.gridDim, config.blockDim);
    wanted.sharedMemBytes = static_cast<unsigned>(config.dynamicSmemBytes);
    wanted.hStream = config.stream;
    wanted.attrs = same_layout<CUlaunchAttribute>(config.attrs);
    wanted.numAttrs = config.numAttrs;
    return wanted;
}

}  // namespace cuslice::fake
