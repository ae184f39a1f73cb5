// Fills: 8, 16 and 32 bits, rows, older and newer forms, legacy and per-thread default stream.

#include "fake/driver/api_prologue.h"
#include "fake/driver/transfer.h"

using namespace cuslice::fake;

namespace {

constexpr DefaultStream legacy = DefaultStream::Legacy, per_thread = DefaultStream::PerThread;

}  // namespace

CUresult CUDAAPI cuMemsetD8(CUdeviceptr_v1 to, unsigned char value, unsigned int count) {
    CUSLICE_ENTER(cuMemsetD8)
    return fill_rows({to, 0, value, 1, count, 1}, synchronous(legacy));
}

CUresult CUDAAPI cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
    CUSLICE_ENTER(cuMemsetD8_v2)
    return fill_rows({to, 0, value, 1, count, 1}, synchronous(legacy));
}

CUresult CUDAAPI cuMemsetD8_v2_ptds(CUdeviceptr to, unsigned char value, size_t count) {
    CUSLICE_ENTER(cuMemsetD8_v2_ptds)
    return fill_rows({to, 0, value, 1, count, 1}, synchronous(per_thread));
}

CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    CUSLICE_ENTER(cuMemsetD8Async)
    return fill_rows({to, 0, value, 1, count, 1}, in_stream(stream, legacy));
}

CUresult CUDAAPI cuMemsetD8Async_ptsz(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    CUSLICE_ENTER(cuMemsetD8Async_ptsz)
    return fill_rows({to, 0, value, 1, count, 1}, in_stream(stream, per_thread));
}

CUresult CUDAAPI cuMemsetD2D8(CUdeviceptr_v1 to, unsigned int pitch, unsigned char value, unsigned int width,
                              unsigned int height) {
    CUSLICE_ENTER(cuMemsetD2D8)
    return fill_rows({to, pitch, value, 1, width, height}, synchronous(legacy));
}

CUresult CUDAAPI cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height) {
    CUSLICE_ENTER(cuMemsetD2D8_v2)
    return fill_rows({to, pitch, value, 1, width, height}, synchronous(legacy));
}

CUresult CUDAAPI cuMemsetD2D8_v2_ptds(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height) {
    CUSLICE_ENTER(cuMemsetD2D8_v2_ptds)
    return fill_rows({to, pitch, value, 1, width, height}, synchronous(per_thread));
}

CUresult CUDAAPI cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
                                   CUstream stream) {
    CUSLICE_ENTER(cuMemsetD2D8Async)
    return fill_rows({to, pitch, value, 1, width, height}, in_stream(stream, legacy));
}

CUresult CUDAAPI cuMemsetD2D8Async_ptsz(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
                                        CUstream stream) {
    CUSLICE_ENTER(cuMemsetD2D8Async_ptsz)
    return fill_rows({to, pitch, value, 1, width, height}, in_stream(stream, per_thread));
}

CUresult CUDAAPI cuMemsetD16(CUdeviceptr_v1 to, unsigned short value, unsigned int count) {
    CUSLICE_ENTER(cuMemsetD16)
    return fill_rows({to, 0, value, 2, count, 1}, synchronous(legacy));
}

CUresult CUDAAPI cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
    CUSLICE_ENTER(cuMemsetD16_v2)
    return fill_rows({to, 0, value, 2, count, 1}, synchronous(legacy));
}

CUresult CUDAAPI cuMemsetD16_v2_ptds(CUdeviceptr to, unsigned short value, size_t count) {
    CUSLICE_ENTER(cuMemsetD16_v2_ptds)
    return fill_rows({to, 0, value, 2, count, 1}, synchronous(per_thread));
}

CUresult CUDAAPI cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
    CUSLICE_ENTER(cuMemsetD16Async)
    return fill_rows({to, 0, value, 2, count, 1}, in_stream(stream, legacy));
}

CUresult CUDAAPI cuMemsetD16Async_ptsz(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
    CUSLICE_ENTER(cuMemsetD16Async_ptsz)
    return fill_rows({to, 0, value, 2, count, 1}, in_stream(stream, per_thread));
}

CUresult CUDAAPI cuMemsetD2D16(CUdeviceptr_v1 to, unsigned int pitch, unsigned short value, unsigned int width,
                               unsigned int height) {
    CUSLICE_ENTER(cuMemsetD2D16)
    return fill_rows({to, pitch, value, 2, width, height}, synchronous(legacy));
}

CUresult CUDAAPI cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height) {
    CUSLICE_ENTER(cuMemsetD2D16_v2)
    return fill_rows({to, pitch, value, 2, width, height}, synchronous(legacy));
}

CUresult CUDAAPI cuMemsetD2D16_v2_ptds(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                                       size_t height) {
    CUSLICE_ENTER(cuMemsetD2D16_v2_ptds)
    return fill_rows({to, pitch, value, 2, width, height}, synchronous(per_thread));
}

CUresult CUDAAPI cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,
                                    CUstream stream) {
    CUSLICE_ENTER(cuMemsetD2D16Async)
    return fill_rows({to, pitch, value, 2, width, height}, in_stream(stream, legacy));
}

CUresult CUDAAPI cuMemsetD2D16Async_ptsz(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                                         size_t height, CUstream stream) {
    CUSLICE_ENTER(cuMemsetD2D16Async_ptsz)
    return fill_rows({to, pitch, value, 2, width, height}, in_stream(stream, per_thread));
}

CUresult CUDAAPI cuMemsetD32(CUdeviceptr_v1 to, unsigned int value, unsigned int count) {
    CUSLICE_ENTER(cuMemsetD32)
    return fill_rows({to, 0, value, 4, count, 1}, synchronous(legacy));
}

CUresult CUDAAPI cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count) {
    CUSLICE_ENTER(cuMemsetD32_v2)
    return fill_rows({to, 0, value, 4, count, 1}, synchronous(legacy));
}

CUresult CUDAAPI cuMemsetD32_v2_ptds(CUdeviceptr to, unsigned int value, size_t count) {
    CUSLICE_ENTER(cuMemsetD32_v2_ptds)
    return fill_rows({to, 0, value, 4, count, 1}, synchronous(per_thread));
}

CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
    CUSLICE_ENTER(cuMemsetD32Async)
    return fill_rows({to, 0, value, 4, count, 1}, in_stream(stream, legacy));
}

CUresult CUDAAPI cuMemsetD32Async_ptsz(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
    CUSLICE_ENTER(cuMemsetD32Async_ptsz)
    return fill_rows({to, 0, value, 4, count, 1}, in_stream(stream, per_thread));
}

CUresult CUDAAPI cuMemsetD2D32(CUdeviceptr_v1 to, unsigned int pitch, unsigned int value, unsigned int width,
                               unsigned int height) {
    CUSLICE_ENTER(cuMemsetD2D32)
    return fill_rows({to, pitch, value, 4, width, height}, synchronous(legacy));
}

CUresult CUDAAPI cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height) {
    CUSLICE_ENTER(cuMemsetD2D32_v2)
    return fill_rows({to, pitch, value, 4, width, height}, synchronous(legacy));
}

CUresult CUDAAPI cuMemsetD2D32_v2_ptds(CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height) {
    CUSLICE_ENTER(cuMemsetD2D32_v2_ptds)
    return fill_rows({to, pitch, value, 4, width, height}, synchronous(per_thread));
}

CUresult CUDAAPI cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height,
                                    CUstream stream) {
    CUSLICE_ENTER(cuMemsetD2D32Async)
    return fill_rows({to, pitch, value, 4, width, height}, in_stream(stream, legacy));
}

CUresult CUDAAPI cuMemsetD2D32Async_ptsz(CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height,
                                         CUstream stream) {
    CUSLICE_ENTER(cuMemsetD2D32Async_ptsz)
    return fill_rows({to, pitch, value, 4, width, height}, in_stream(stream, per_thread));
}
