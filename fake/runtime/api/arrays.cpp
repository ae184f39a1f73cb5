// SPDX-License-Identifier: Apache-2.0
// CUDA arrays as objects. Mipmaps fail by name.

#include "fake/runtime/array_format.h"

using namespace cuslice::fake;

cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* description, cudaExtent extent,
                              unsigned int flags) {
    CUDA_ARRAY3D_DESCRIPTOR wanted{};
    if (array == nullptr || description == nullptr)
        return record(cudaErrorInvalidValue);
    CUSLICE_TRY(record(to_driver_format(*description, &wanted.Format, &wanted.NumChannels)));
    wanted.Width = extent.width;
    wanted.Height = extent.height;
    wanted.Depth = extent.depth;
    wanted.Flags = flags;  // cudaArray* and CUDA_ARRAY3D_* have the same bits
    return in_context([&] {
        CUarray made = nullptr;
        CUSLICE_TRY(CU(cuArray3DCreate, 3020)(&made, &wanted));
        *array = reinterpret_cast<cudaArray_t>(made);
        return CUDA_SUCCESS;
    });
}

cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* description, size_t width, size_t height,
                            unsigned int flags) {
    return cudaMalloc3DArray(array, description, {width, height, 0}, flags);
}

cudaError_t cudaFreeArray(cudaArray_t array) {
    return in_context(
        [&] { return array == nullptr ? CUDA_SUCCESS : CU(cuArrayDestroy, 2000)(reinterpret_cast<CUarray>(array)); });
}

cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* description, cudaExtent* extent, unsigned int* flags,
                             cudaArray_t array) {
    CUDA_ARRAY3D_DESCRIPTOR found{};
    CUSLICE_TRY(in_context(CU(cuArray3DGetDescriptor, 3020), &found, reinterpret_cast<CUarray>(array)));
    if (extent != nullptr) {
        *extent = {found.Width, found.Height, found.Depth};
    }
    if (flags != nullptr)
        *flags = found.Flags;
    return description == nullptr ? cudaSuccess
                                  : record(from_driver_format(found.Format, found.NumChannels, description));
}

cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* description, cudaArray_const_t array) {
    if (description == nullptr)
        return record(cudaErrorInvalidValue);
    return cudaArrayGetInfo(description, nullptr, nullptr, const_cast<cudaArray_t>(array));
}

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
    return {x, y, z, w, kind};
}
