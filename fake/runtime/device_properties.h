// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>
#include <cstddef>

namespace cuslice::fake {

/// cudaDeviceProp as CUDA 12 has it (NVIDIA's documentation of the runtime API 12.9). Up to and with
/// reservedSharedMemPerBlock it is also the structure of CUDA 11, which 12's unversioned cudaGetDeviceProperties fills.
struct DeviceProperties12 {
    char name[256];
    cudaUUID_t uuid;
    char luid[8];
    unsigned int luidDeviceNodeMask;
    size_t totalGlobalMem;
#define CUSLICE_PROPERTY(type, member, attribute) type member;
#define CUSLICE_PROPERTY_12 CUSLICE_PROPERTY
#define CUSLICE_PROPERTY_13(type, member, attribute)
#define CUSLICE_PROPERTY_2(type, member, x, y) type member[2];
#define CUSLICE_PROPERTY_3(type, member, x, y, z) type member[3];
#include "fake/runtime/properties.def"
#undef CUSLICE_PROPERTY
#undef CUSLICE_PROPERTY_12
#undef CUSLICE_PROPERTY_13
#undef CUSLICE_PROPERTY_2
#undef CUSLICE_PROPERTY_3
    int reserved[63];
};

/// Bytes that cudaGetDeviceProperties of 11 writes, and 12's unversioned one.
inline constexpr size_t kDeviceProperties11Bytes = 728;

// Sizes and offsets as NVIDIA's 12.9 header has them on x86_64.
static_assert(sizeof(DeviceProperties12) == 1032);
static_assert(offsetof(DeviceProperties12, hostRegisterSupported) == kDeviceProperties11Bytes);
static_assert(offsetof(DeviceProperties12, totalGlobalMem) == 288);
static_assert(offsetof(DeviceProperties12, major) == 360);
static_assert(offsetof(DeviceProperties12, multiProcessorCount) == 388);
static_assert(offsetof(DeviceProperties12, pciBusID) == 584);
// And of 13.0's, which comes from its own header.
static_assert(sizeof(cudaDeviceProp) == 1008);

}  // namespace cuslice::fake
