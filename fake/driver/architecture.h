// SPDX-License-Identifier: Apache-2.0
#pragma once
// Properties that follow from a compute capability alone (CUDA C++ Programming Guide, "Compute Capabilities").

#include "fake/spec/gpu_spec.h"

namespace cuslice::fake {

struct Architecture {
    int capability;  // major * 10 + minor, the first that this row holds for
    int threads_per_multiprocessor;
    int blocks_per_multiprocessor;
    int shared_per_multiprocessor;  // bytes
    int shared_per_block_optin;     // bytes
    int registers_per_multiprocessor;
};

constexpr int kMaxThreadsPerBlock = 1024;
constexpr int kSharedPerBlock = 48 << 10;
constexpr int kReservedShared = 1 << 10;  // bytes of each block's shared memory that the hardware keeps, from 8.0 on
constexpr int kWarpSize = 32;
constexpr unsigned kMaxBlock[3] = {1024, 1024, 64};
constexpr unsigned kMaxGrid[3] = {2147483647, 65535, 65535};
constexpr int kLinearTextureWidth = 1 << 28;  // elements of a texture of one dimension in linear memory

const Architecture& architecture_of(const GpuSpec& gpu);

/// True if a GPU can join the team of a multicast object: from Hopper on, if it has NVLink.
inline bool can_multicast(const GpuSpec& gpu) { return gpu.major >= 9 && gpu.nvlink; }

/// True if host and GPU may touch managed memory at the same time (Linux, from Pascal on).
inline bool has_concurrent_managed_access(const GpuSpec& gpu) { return gpu.major >= 6; }

/// The value of a CUdevice_attribute; false if there is no such attribute.
bool device_attribute(const GpuSpec& gpu, int attribute, int& value);

}  // namespace cuslice::fake
