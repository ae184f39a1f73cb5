// SPDX-License-Identifier: Apache-2.0
// Texture and surface objects. Members that the structures of CUDA 11 and 12 lack (flags, reserved) are neither read
// nor written.

#include "fake/runtime/textures.h"
#include "fake/runtime/array_format.h"
#include "fake/runtime/forward.h"

using namespace cuslice::fake;

namespace {

cudaError_t to_driver(const cudaResourceDesc& from, CUDA_RESOURCE_DESC& to) {
    to.resType = static_cast<CUresourcetype>(from.resType);
    switch (from.resType) {
        case cudaResourceTypeArray:
            to.res.array.hArray = reinterpret_cast<CUarray>(from.res.array.array);
            return cudaSuccess;
        case cudaResourceTypeMipmappedArray:
            to.res.mipmap.hMipmappedArray = reinterpret_cast<CUmipmappedArray>(from.res.mipmap.mipmap);
            return cudaSuccess;
        case cudaResourceTypeLinear:
            to.res.linear.devPtr = address(from.res.linear.devPtr);
            to.res.linear.sizeInBytes = from.res.linear.sizeInBytes;
            return to_driver_format(from.res.linear.desc, &to.res.linear.format, &to.res.linear.numChannels);
        case cudaResourceTypePitch2D:
            to.res.pitch2D.devPtr = address(from.res.pitch2D.devPtr);
            to.res.pitch2D.width = from.res.pitch2D.width;
            to.res.pitch2D.height = from.res.pitch2D.height;
            to.res.pitch2D.pitchInBytes = from.res.pitch2D.pitchInBytes;
            return to_driver_format(from.res.pitch2D.desc, &to.res.pitch2D.format, &to.res.pitch2D.numChannels);
        default:
            return cudaErrorInvalidValue;
    }
}

cudaError_t from_driver(const CUDA_RESOURCE_DESC& from, cudaResourceDesc& to) {
    to.resType = static_cast<cudaResourceType>(from.resType);
    switch (to.resType) {
        case cudaResourceTypeArray:
            to.res.array.array = reinterpret_cast<cudaArray_t>(from.res.array.hArray);
            return cudaSuccess;
        case cudaResourceTypeMipmappedArray:
            to.res.mipmap.mipmap = reinterpret_cast<cudaMipmappedArray_t>(from.res.mipmap.hMipmappedArray);
            return cudaSuccess;
        case cudaResourceTypeLinear:
            to.res.linear.devPtr = reinterpret_cast<void*>(from.res.linear.devPtr);
            to.res.linear.sizeInBytes = from.res.linear.sizeInBytes;
            return from_driver_format(from.res.linear.format, from.res.linear.numChannels, &to.res.linear.desc);
        default:
            to.res.pitch2D.devPtr = reinterpret_cast<void*>(from.res.pitch2D.devPtr);
            to.res.pitch2D.width = from.res.pitch2D.width;
            to.res.pitch2D.height = from.res.pitch2D.height;
            to.res.pitch2D.pitchInBytes = from.res.pitch2D.pitchInBytes;
            return from_driver_format(from.res.pitch2D.format, from.res.pitch2D.numChannels, &to.res.pitch2D.desc);
    }
}

/// Copies the members of a texture's description that the runtime and the driver have alike, either way.
template <class From, class To>
void copy_sampling(const From& from, To& to) {
    for (int i = 0; i < 3; ++i)
        to.addressMode[i] = static_cast<std::decay_t<decltype(to.addressMode[i])>>(from.addressMode[i]);
    to.filterMode = static_cast<decltype(to.filterMode)>(from.filterMode);
    to.maxAnisotropy = from.maxAnisotropy;
    to.mipmapFilterMode = static_cast<decltype(to.mipmapFilterMode)>(from.mipmapFilterMode);
    to.mipmapLevelBias = from.mipmapLevelBias;
    to.minMipmapLevelClamp = from.minMipmapLevelClamp;
    to.maxMipmapLevelClamp = from.maxMipmapLevelClamp;
    std::copy_n(from.borderColor, 4, to.borderColor);
}

CUDA_TEXTURE_DESC to_driver(const cudaTextureDesc& from) {
    CUDA_TEXTURE_DESC to{};
    copy_sampling(from, to);
    to.flags = (from.readMode == cudaReadModeElementType ? CU_TRSF_READ_AS_INTEGER : 0U) |
               (from.normalizedCoords != 0 ? CU_TRSF_NORMALIZED_COORDINATES : 0U) |
               (from.sRGB != 0 ? CU_TRSF_SRGB : 0U) |
               (from.disableTrilinearOptimization != 0 ? CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION : 0U) |
               (from.seamlessCubemap != 0 ? CU_TRSF_SEAMLESS_CUBEMAP : 0U);
    return to;
}

cudaTextureDesc from_driver(const CUDA_TEXTURE_DESC& from) {
    cudaTextureDesc to{};
    copy_sampling(from, to);
    to.readMode = (from.flags & CU_TRSF_READ_AS_INTEGER) != 0 ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
    to.normalizedCoords = (from.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
    to.sRGB = (from.flags & CU_TRSF_SRGB) != 0;
    to.disableTrilinearOptimization = (from.flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION) != 0;
    to.seamlessCubemap = (from.flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0;
    return to;
}

/// Copies a view of a resource between the runtime's form and the driver's, either way.
template <class From, class To>
void copy_view(const From& from, To& to) {
    to.format = static_cast<decltype(to.format)>(from.format);
    to.width = from.width;
    to.height = from.height;
    to.depth = from.depth;
    to.firstMipmapLevel = from.firstMipmapLevel;
    to.lastMipmapLevel = from.lastMipmapLevel;
    to.firstLayer = from.firstLayer;
    to.lastLayer = from.lastLayer;
}

/// Asks for a description in the driver's form, and hands it to `give`.
template <class Description, class Ask, class Give>
cudaError_t described(const void* out, Ask ask, Give give) {
    if (out == nullptr)
        return record(cudaErrorInvalidValue);
    return in_context([&] {
        Description found{};
        CUSLICE_TRY(as_error(ask(&found)));
        return give(found);
    });
}

}  // namespace

cudaError_t cuslice::fake::create_texture(cudaTextureObject_t* object, const cudaResourceDesc* resource,
                                          const cudaTextureDesc* texture, const cudaResourceViewDesc* view) {
    if (object == nullptr || resource == nullptr || texture == nullptr)
        return record(cudaErrorInvalidValue);
    return in_context([&] {
        CUDA_RESOURCE_DESC what{};
        CUSLICE_TRY(to_driver(*resource, what));
        const CUDA_TEXTURE_DESC how = to_driver(*texture);
        CUDA_RESOURCE_VIEW_DESC seen{};
        if (view != nullptr)
            copy_view(*view, seen);
        return as_error(CU(cuTexObjectCreate, 5000)(object, &what, &how, view != nullptr ? &seen : nullptr));
    });
}

CUSLICE_FORWARD(cudaDestroyTextureObject, cuTexObjectDestroy, 5000, object)

cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* out, cudaTextureObject_t object) {
    return described<CUDA_RESOURCE_DESC>(
        out, [&](CUDA_RESOURCE_DESC* found) { return CU(cuTexObjectGetResourceDesc, 5000)(found, object); },
        [&](const CUDA_RESOURCE_DESC& found) { return from_driver(found, *out); });
}

cudaError_t cuslice::fake::describe_texture(cudaTextureDesc* out, cudaTextureObject_t object) {
    return described<CUDA_TEXTURE_DESC>(
        out, [&](CUDA_TEXTURE_DESC* found) { return CU(cuTexObjectGetTextureDesc, 5000)(found, object); },
        [&](const CUDA_TEXTURE_DESC& found) {
            *out = from_driver(found);
            return cudaSuccess;
        });
}

cudaError_t cudaGetTextureObjectResourceViewDesc(cudaResourceViewDesc* out, cudaTextureObject_t object) {
    return described<CUDA_RESOURCE_VIEW_DESC>(
        out, [&](CUDA_RESOURCE_VIEW_DESC* found) { return CU(cuTexObjectGetResourceViewDesc, 5000)(found, object); },
        [&](const CUDA_RESOURCE_VIEW_DESC& found) {
            copy_view(found, *out);
            return cudaSuccess;
        });
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* object, const cudaResourceDesc* resource) {
    if (object == nullptr || resource == nullptr)
        return record(cudaErrorInvalidValue);
    return in_context([&] {
        CUDA_RESOURCE_DESC what{};
        CUSLICE_TRY(to_driver(*resource, what));
        return as_error(CU(cuSurfObjectCreate, 5000)(object, &what));
    });
}

CUSLICE_FORWARD(cudaDestroySurfaceObject, cuSurfObjectDestroy, 5000, object)

cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc* out, cudaSurfaceObject_t object) {
    return described<CUDA_RESOURCE_DESC>(
        out, [&](CUDA_RESOURCE_DESC* found) { return CU(cuSurfObjectGetResourceDesc, 5000)(found, object); },
        [&](const CUDA_RESOURCE_DESC& found) { return from_driver(found, *out); });
}
