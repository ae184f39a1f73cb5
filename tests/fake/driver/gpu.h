// SPDX-License-Identifier: Apache-2.0
#pragma once
// Helpers that the driver's tests share.

#include <cuda.h>

#include "tests/fake/child.h"

namespace fake_test {

/// Initialises the driver and makes the primary context of a device current; it is retained once.
inline CUcontext use_device(const Report& report, CUdevice device = 0) {
    CUcontext context = nullptr;
    EXPECT_EQUAL(cuInit(0), CUDA_SUCCESS);
    EXPECT_EQUAL(cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
    EXPECT_EQUAL(cuCtxSetCurrent(context), CUDA_SUCCESS);
    return context;
}

/// Bytes that are free on the current device.
inline size_t free_bytes() {
    size_t free = 0, total = 0;
    return cuMemGetInfo(&free, &total) == CUDA_SUCCESS ? free : 0;
}

/// The properties of memory on the first GPU that can be exported as a descriptor.
inline CUmemAllocationProp exportable_memory() {
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    return prop;
}

/// An array of floats.
inline CUDA_ARRAY3D_DESCRIPTOR floats(size_t width, size_t height, size_t depth, unsigned channels,
                                      unsigned flags = 0) {
    CUDA_ARRAY3D_DESCRIPTOR descriptor{};
    descriptor.Width = width;
    descriptor.Height = height;
    descriptor.Depth = depth;
    descriptor.Format = CU_AD_FORMAT_FLOAT;
    descriptor.NumChannels = channels;
    descriptor.Flags = flags;
    return descriptor;
}

constexpr size_t MiB = size_t{1} << 20;
inline const Environment one_t4 = {{"CUSLICE_FAKE", "t4"}};

}  // namespace fake_test
