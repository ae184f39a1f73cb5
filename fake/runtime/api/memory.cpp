// SPDX-License-Identifier: Apache-2.0
// Device and managed memory, and host memory that the device can reach.

#include "fake/runtime/forward.h"

using namespace cuslice::fake;

namespace {

/// Runs `call` with a place for a device address, and hands the address on as a pointer if it succeeds.
template <class Call>
cudaError_t allocate(void** pointer, Call call) {
    if (pointer == nullptr)
        return record(cudaErrorInvalidValue);
    return in_context([&] {
        CUdeviceptr found = 0;
        CUSLICE_TRY(call(&found));
        *pointer = reinterpret_cast<void*>(found);
        return CUDA_SUCCESS;
    });
}

/// The element size that cuMemAllocPitch aligns rows for: the one that suits all of 4, 8 and 16 (cuda.h).
constexpr unsigned kPitchElementBytes = 16;

}  // namespace

cudaError_t cudaMalloc(void** pointer, size_t size) {
    // The runtime answers zero bytes with success and no memory; the driver refuses them.
    return allocate(pointer,
                    [&](CUdeviceptr* found) { return size == 0 ? CUDA_SUCCESS : CU(cuMemAlloc, 3020)(found, size); });
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
    if (pitch == nullptr)
        return record(cudaErrorInvalidValue);
    return allocate(pointer, [&](CUdeviceptr* found) {
        if (width == 0 || height == 0) {
            *pitch = 0;
            return CUDA_SUCCESS;
        }
        return CU(cuMemAllocPitch, 3020)(found, pitch, width, height, kPitchElementBytes);
    });
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pitched, cudaExtent extent) {
    size_t rows = 0;
    if (pitched == nullptr || __builtin_mul_overflow(extent.height, extent.depth, &rows)) {
        return record(cudaErrorInvalidValue);
    }
    void* pointer = nullptr;
    size_t pitch = 0;
    CUSLICE_TRY(cudaMallocPitch(&pointer, &pitch, extent.width, rows));
    *pitched = {pointer, pitch, extent.width, extent.height};
    return cudaSuccess;
}

cudaError_t cudaMallocManaged(void** pointer, size_t size, unsigned int flags) {
    return allocate(pointer, [&](CUdeviceptr* found) { return CU(cuMemAllocManaged, 6000)(found, size, flags); });
}

cudaError_t cudaFree(void* pointer) {
    // cudaFree(0) is how many programs make the context.
    return in_context([&] { return pointer == nullptr ? CUDA_SUCCESS : CU(cuMemFree, 3020)(address(pointer)); });
}

CUSLICE_FORWARD(cudaMemGetInfo, cuMemGetInfo, 3020, free, total)

cudaError_t cudaHostAlloc(void** pointer, size_t size, unsigned int flags) {
    if (pointer == nullptr)
        return record(cudaErrorInvalidValue);
    return in_context([&] {
        if (size == 0) {
            *pointer = nullptr;
            return CUDA_SUCCESS;
        }
        return CU(cuMemHostAlloc, 2020)(pointer, size, flags);
    });
}

cudaError_t cudaMallocHost(void** pointer, size_t size) { return cudaHostAlloc(pointer, size, cudaHostAllocDefault); }

cudaError_t cudaFreeHost(void* pointer) {
    return in_context([&] { return pointer == nullptr ? CUDA_SUCCESS : CU(cuMemFreeHost, 2000)(pointer); });
}

CUSLICE_FORWARD(cudaHostRegister, cuMemHostRegister, 6050, pointer, size, flags)
CUSLICE_FORWARD(cudaHostUnregister, cuMemHostUnregister, 4000, pointer)

cudaError_t cudaHostGetDevicePointer(void** device_pointer, void* pointer, unsigned int flags) {
    return allocate(device_pointer,
                    [&](CUdeviceptr* found) { return CU(cuMemHostGetDevicePointer, 3020)(found, pointer, flags); });
}

CUSLICE_FORWARD(cudaHostGetFlags, cuMemHostGetFlags, 2030, flags, pointer)
CUSLICE_FORWARD(cudaMemRangeGetAttribute, cuMemRangeGetAttribute, 8000, data, data_size, attribute, pointer, count)
CUSLICE_FORWARD(cudaMemRangeGetAttributes, cuMemRangeGetAttributes, 8000, data, data_sizes, attributes, attribute_count,
                pointer, count)
