// SPDX-License-Identifier: Apache-2.0
// Copies of rows, from and to pitched memory and arrays. Built twice: legacy and per-thread default stream (_ptsz,
// _ptds).

#include "fake/runtime/copy.h"
#include "fake/runtime/forward.h"

using namespace cuslice::fake;

namespace {

void from_memory(CUDA_MEMCPY2D& copy, const void* source, size_t pitch, cudaMemcpyKind kind) {
    copy.srcMemoryType = source_type(kind);
    copy.srcHost = source;
    copy.srcDevice = address(source);
    copy.srcPitch = pitch;
}

void to_memory(CUDA_MEMCPY2D& copy, void* destination, size_t pitch, cudaMemcpyKind kind) {
    copy.dstMemoryType = destination_type(kind);
    copy.dstHost = destination;
    copy.dstDevice = address(destination);
    copy.dstPitch = pitch;
}

void from_array(CUDA_MEMCPY2D& copy, cudaArray_const_t source, size_t x, size_t y) {
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.srcArray = reinterpret_cast<CUarray>(const_cast<cudaArray_t>(source));
    copy.srcXInBytes = x;
    copy.srcY = y;
}

void to_array(CUDA_MEMCPY2D& copy, cudaArray_t destination, size_t x, size_t y) {
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = reinterpret_cast<CUarray>(destination);
    copy.dstXInBytes = x;
    copy.dstY = y;
}

/// Checks what the runtime checks before the driver, and copies: at once where there is no stream.
template <class... Stream>
cudaError_t run(CUDA_MEMCPY2D& copy, size_t width, size_t height, cudaMemcpyKind kind, Stream... stream) {
    if (!is_direction(kind))
        return record(cudaErrorInvalidMemcpyDirection);
    const bool pitches = (copy.srcMemoryType == CU_MEMORYTYPE_ARRAY || copy.srcPitch >= width) &&
                         (copy.dstMemoryType == CU_MEMORYTYPE_ARRAY || copy.dstPitch >= width);
    if (!pitches)
        return record(cudaErrorInvalidPitchValue);
    copy.WidthInBytes = width;
    copy.Height = height;
    return in_context([&] {
        if (width == 0 || height == 0)
            return CUDA_SUCCESS;
        if constexpr (sizeof...(stream) == 0) {
            return CU_STREAM(cuMemcpy2DUnaligned, 3020)(&copy);
        } else {
            return CU_STREAM(cuMemcpy2DAsync, 3020)(&copy, stream...);
        }
    });
}

template <class... Stream>
cudaError_t memory_to_memory(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                             size_t height, cudaMemcpyKind kind, Stream... stream) {
    CUDA_MEMCPY2D copy{};
    from_memory(copy, from, from_pitch, kind);
    to_memory(copy, to, to_pitch, kind);
    return run(copy, width, height, kind, stream...);
}

template <class... Stream>
cudaError_t memory_to_array(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch, size_t width,
                            size_t height, cudaMemcpyKind kind, Stream... stream) {
    CUDA_MEMCPY2D copy{};
    from_memory(copy, from, pitch, kind);
    to_array(copy, to, x, y);
    return run(copy, width, height, kind, stream...);
}

template <class... Stream>
cudaError_t array_to_memory(void* to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width,
                            size_t height, cudaMemcpyKind kind, Stream... stream) {
    CUDA_MEMCPY2D copy{};
    from_array(copy, from, x, y);
    to_memory(copy, to, pitch, kind);
    return run(copy, width, height, kind, stream...);
}

}  // namespace

CUSLICE_CALLING(cudaMemcpy2D, memory_to_memory, to, to_pitch, from, from_pitch, width, height, kind)
CUSLICE_CALLING(cudaMemcpy2DAsync, memory_to_memory, to, to_pitch, from, from_pitch, width, height, kind, stream)
CUSLICE_CALLING(cudaMemcpy2DToArray, memory_to_array, to, x, y, from, pitch, width, height, kind)
CUSLICE_CALLING(cudaMemcpy2DToArrayAsync, memory_to_array, to, x, y, from, pitch, width, height, kind, stream)
CUSLICE_CALLING(cudaMemcpy2DFromArray, array_to_memory, to, pitch, from, x, y, width, height, kind)
CUSLICE_CALLING(cudaMemcpy2DFromArrayAsync, array_to_memory, to, pitch, from, x, y, width, height, kind, stream)

cudaError_t cudaMemcpy2DArrayToArray(CUSLICE_PARAMETERS(cudaMemcpy2DArrayToArray, to, to_x, to_y, from, from_x, from_y,
                                                        width, height, kind)) {
    CUDA_MEMCPY2D copy{};
    from_array(copy, from, from_x, from_y);
    to_array(copy, to, to_x, to_y);
    return run(copy, width, height, kind);
}
