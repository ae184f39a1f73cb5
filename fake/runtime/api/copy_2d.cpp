// Copies of rows, from and to pitched memory and arrays. Built twice: legacy and per-thread default stream (_ptsz,
// _ptds).

#include "fake/runtime/copy.h"

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

/// Checks what the runtime checks before the driver, and copies. `stream` null: at once.
cudaError_t run(CUDA_MEMCPY2D& copy, size_t width, size_t height, cudaMemcpyKind kind, const cudaStream_t* stream) {
    if (!is_direction(kind)) return record(cudaErrorInvalidMemcpyDirection);
    const bool pitches = (copy.srcMemoryType == CU_MEMORYTYPE_ARRAY || copy.srcPitch >= width) &&
                         (copy.dstMemoryType == CU_MEMORYTYPE_ARRAY || copy.dstPitch >= width);
    if (!pitches) return record(cudaErrorInvalidPitchValue);
    copy.WidthInBytes = width;
    copy.Height = height;
    return in_context([&] {
        if (width == 0 || height == 0) return CUDA_SUCCESS;
        return stream == nullptr ? CU_STREAM(cuMemcpy2DUnaligned, 3020)(&copy)
                                 : CU_STREAM(cuMemcpy2DAsync, 3020)(&copy, *stream);
    });
}

cudaError_t memory_to_memory(void* destination, size_t destination_pitch, const void* source, size_t source_pitch,
                             size_t width, size_t height, cudaMemcpyKind kind, const cudaStream_t* stream) {
    CUDA_MEMCPY2D copy{};
    from_memory(copy, source, source_pitch, kind);
    to_memory(copy, destination, destination_pitch, kind);
    return run(copy, width, height, kind, stream);
}

cudaError_t memory_to_array(cudaArray_t destination, size_t x, size_t y, const void* source, size_t source_pitch,
                            size_t width, size_t height, cudaMemcpyKind kind, const cudaStream_t* stream) {
    CUDA_MEMCPY2D copy{};
    from_memory(copy, source, source_pitch, kind);
    to_array(copy, destination, x, y);
    return run(copy, width, height, kind, stream);
}

cudaError_t array_to_memory(void* destination, size_t destination_pitch, cudaArray_const_t source, size_t x, size_t y,
                            size_t width, size_t height, cudaMemcpyKind kind, const cudaStream_t* stream) {
    CUDA_MEMCPY2D copy{};
    from_array(copy, source, x, y);
    to_memory(copy, destination, destination_pitch, kind);
    return run(copy, width, height, kind, stream);
}

}  // namespace

cudaError_t cudaMemcpy2D(void* destination, size_t destination_pitch, const void* source, size_t source_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
    return memory_to_memory(destination, destination_pitch, source, source_pitch, width, height, kind, nullptr);
}

cudaError_t cudaMemcpy2DAsync(void* destination, size_t destination_pitch, const void* source, size_t source_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
    return memory_to_memory(destination, destination_pitch, source, source_pitch, width, height, kind, &stream);
}

cudaError_t cudaMemcpy2DToArray(cudaArray_t destination, size_t x, size_t y, const void* source, size_t source_pitch,
                                size_t width, size_t height, cudaMemcpyKind kind) {
    return memory_to_array(destination, x, y, source, source_pitch, width, height, kind, nullptr);
}

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t destination, size_t x, size_t y, const void* source,
                                     size_t source_pitch, size_t width, size_t height, cudaMemcpyKind kind,
                                     cudaStream_t stream) {
    return memory_to_array(destination, x, y, source, source_pitch, width, height, kind, &stream);
}

cudaError_t cudaMemcpy2DFromArray(void* destination, size_t destination_pitch, cudaArray_const_t source, size_t x,
                                  size_t y, size_t width, size_t height, cudaMemcpyKind kind) {
    return array_to_memory(destination, destination_pitch, source, x, y, width, height, kind, nullptr);
}

cudaError_t cudaMemcpy2DFromArrayAsync(void* destination, size_t destination_pitch, cudaArray_const_t source, size_t x,
                                       size_t y, size_t width, size_t height, cudaMemcpyKind kind,
                                       cudaStream_t stream) {
    return array_to_memory(destination, destination_pitch, source, x, y, width, height, kind, &stream);
}

cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t destination, size_t destination_x, size_t destination_y,
                                     cudaArray_const_t source, size_t source_x, size_t source_y, size_t width,
                                     size_t height, cudaMemcpyKind kind) {
    CUDA_MEMCPY2D copy{};
    from_array(copy, source, source_x, source_y);
    to_array(copy, destination, destination_x, destination_y);
    return run(copy, width, height, kind, nullptr);
}
