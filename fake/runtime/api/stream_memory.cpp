// SPDX-License-Identifier: Apache-2.0
// Memory whose life is ordered by a stream, and memsets. Built twice: legacy and per-thread default stream (_ptsz,
// _ptds).

#include "fake/runtime/forward.h"

using namespace cuslice::fake;

namespace {

/// Sets a box of memory, slice by slice; `set` sets one slice of rows.
template <class Set>
cudaError_t set_box(cudaPitchedPtr box, cudaExtent extent, Set set) {
    return in_context([&] {
        CUresult result = CUDA_SUCCESS;
        size_t slice_bytes = 0;
        if (extent.width == 0 || extent.height == 0 || extent.depth == 0)
            return result;
        // ysize is the height that the box was allocated with: slices lie that many rows apart.
        if (__builtin_mul_overflow(box.pitch, box.ysize, &slice_bytes) || extent.height > box.ysize) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        for (size_t slice = 0; slice < extent.depth && result == CUDA_SUCCESS; ++slice) {
            result = set(address(box.ptr) + slice * slice_bytes);
        }
        return result;
    });
}

}  // namespace

CUSLICE_FORWARD_STREAM(cudaMallocAsync, cuMemAllocAsync, 11020, pointer, size, stream)
CUSLICE_FORWARD_STREAM(cudaMallocFromPoolAsync, cuMemAllocFromPoolAsync, 11020, pointer, size, pool, stream)

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
    return in_context(
        [&] { return pointer == nullptr ? CUDA_SUCCESS : CU_STREAM(cuMemFreeAsync, 11020)(address(pointer), stream); });
}

cudaError_t cudaMemset(void* pointer, int value, size_t count) {
    return in_context([&] {
        return count == 0 ? CUDA_SUCCESS
                          : CU_STREAM(cuMemsetD8, 3020)(address(pointer), static_cast<unsigned char>(value), count);
    });
}

cudaError_t cudaMemsetAsync(void* pointer, int value, size_t count, cudaStream_t stream) {
    return in_context([&] {
        return count == 0 ? CUDA_SUCCESS
                          : CU_STREAM(cuMemsetD8Async, 3020)(address(pointer), static_cast<unsigned char>(value), count,
                                                             stream);
    });
}

cudaError_t cudaMemset2D(void* pointer, size_t pitch, int value, size_t width, size_t height) {
    return cudaMemset3D({pointer, pitch, width, height}, value, {width, height, 1});
}

cudaError_t cudaMemset2DAsync(void* pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
    return cudaMemset3DAsync({pointer, pitch, width, height}, value, {width, height, 1}, stream);
}

cudaError_t cudaMemset3D(cudaPitchedPtr box, int value, cudaExtent extent) {
    return set_box(box, extent, [&](CUdeviceptr slice) {
        return CU_STREAM(cuMemsetD2D8, 3020)(slice, box.pitch, static_cast<unsigned char>(value), extent.width,
                                             extent.height);
    });
}

cudaError_t cudaMemset3DAsync(cudaPitchedPtr box, int value, cudaExtent extent, cudaStream_t stream) {
    return set_box(box, extent, [&](CUdeviceptr slice) {
        return CU_STREAM(cuMemsetD2D8Async, 3020)(slice, box.pitch, static_cast<unsigned char>(value), extent.width,
                                                  extent.height, stream);
    });
}
