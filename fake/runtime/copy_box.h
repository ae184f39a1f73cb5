// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fake/runtime/array_format.h"
#include "fake/runtime/copy.h"

namespace cuslice::fake {

/// Fills what CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER have in common. With an array at either end widths and positions
/// count its elements, else bytes (cuda_runtime_api.h, cudaMemcpy3D). The context is current.
template <class Copy, class Parameters>
cudaError_t describe_box(Copy& copy, const Parameters& parameters, cudaMemcpyKind kind) {
    const bool from_pointer = parameters.srcArray == nullptr;
    const bool to_pointer = parameters.dstArray == nullptr;
    if ((parameters.srcPtr.ptr == nullptr) == from_pointer || (parameters.dstPtr.ptr == nullptr) == to_pointer) {
        return cudaErrorInvalidValue;  // exactly one of array and pointer at each end
    }
    size_t source_unit = 1;
    size_t destination_unit = 1;
    if (!from_pointer) {
        CUSLICE_TRY(element_bytes(parameters.srcArray, &source_unit));
    }
    if (!to_pointer) {
        CUSLICE_TRY(element_bytes(parameters.dstArray, &destination_unit));
    }
    copy.srcMemoryType = from_pointer ? source_type(kind) : CU_MEMORYTYPE_ARRAY;
    copy.srcHost = parameters.srcPtr.ptr;
    copy.srcDevice = address(parameters.srcPtr.ptr);
    copy.srcArray = reinterpret_cast<CUarray>(parameters.srcArray);
    copy.srcPitch = parameters.srcPtr.pitch;
    copy.srcHeight = parameters.srcPtr.ysize;
    copy.srcXInBytes = parameters.srcPos.x * source_unit;
    copy.srcY = parameters.srcPos.y;
    copy.srcZ = parameters.srcPos.z;
    copy.dstMemoryType = to_pointer ? destination_type(kind) : CU_MEMORYTYPE_ARRAY;
    copy.dstHost = parameters.dstPtr.ptr;
    copy.dstDevice = address(parameters.dstPtr.ptr);
    copy.dstArray = reinterpret_cast<CUarray>(parameters.dstArray);
    copy.dstPitch = parameters.dstPtr.pitch;
    copy.dstHeight = parameters.dstPtr.ysize;
    copy.dstXInBytes = parameters.dstPos.x * destination_unit;
    copy.dstY = parameters.dstPos.y;
    copy.dstZ = parameters.dstPos.z;
    copy.WidthInBytes = parameters.extent.width * (from_pointer ? destination_unit : source_unit);
    copy.Height = parameters.extent.height;
    copy.Depth = parameters.extent.depth;
    return cudaSuccess;
}

}  // namespace cuslice::fake
