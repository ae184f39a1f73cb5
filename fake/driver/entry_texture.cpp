// SPDX-License-Identifier: Apache-2.0
// Texture objects.

#include "fake/driver/api_prologue.h"
#include "fake/driver/array.h"
#include "fake/driver/resolve.h"
#include "fake/driver/texture.h"

using namespace cuslice::fake;

namespace {

constexpr unsigned kAllTextureFlags = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
                                      CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP;

uint64_t device_number(const Context& context, CUdevice_attribute attribute) {
    int value = 0;
    cuDeviceGetAttribute(&value, attribute, context.gpu->ordinal);
    return static_cast<uint64_t>(value);
}

/// Bytes of an element of this format; 0 if there is none such.
size_t element_bytes(CUarray_format format, unsigned channels) {
    CUDA_ARRAY3D_DESCRIPTOR descriptor{};
    descriptor.Width = 1;
    descriptor.Format = format;
    descriptor.NumChannels = channels;
    Array array;
    return shape_array(descriptor, array) == CUDA_SUCCESS ? array.element : 0;
}

/// Memory that device code can read, aligned as textures have to be.
CUresult check_memory(const Context& context, CUdeviceptr address, size_t bytes) {
    Extents extents;
    if (bytes == 0 || address % device_number(context, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return resolve_device(address, bytes, Access::Read, extents, context.gpu->ordinal);
}

CUresult check_linear(const Context& context, const CUDA_RESOURCE_DESC& resource) {
    const auto& linear = resource.res.linear;
    const size_t element = element_bytes(linear.format, linear.numChannels);
    const uint64_t most = device_number(context, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH);
    if (element == 0 || linear.sizeInBytes / element > most)
        return CUDA_ERROR_INVALID_VALUE;
    return check_memory(context, linear.devPtr, linear.sizeInBytes);
}

CUresult check_pitched(const Context& context, const CUDA_RESOURCE_DESC& resource) {
    const auto& pitched = resource.res.pitch2D;
    const size_t element = element_bytes(pitched.format, pitched.numChannels);
    const auto number = [&](CUdevice_attribute attribute) { return device_number(context, attribute); };
    if (element == 0 || pitched.width == 0 || pitched.height == 0 ||
        pitched.width > number(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH) ||
        pitched.height > number(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT) ||
        pitched.pitchInBytes > number(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH) ||
        pitched.pitchInBytes % number(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT) != 0 ||
        pitched.pitchInBytes < pitched.width * element)
        return CUDA_ERROR_INVALID_VALUE;
    return check_memory(context, pitched.devPtr, (pitched.height - 1) * pitched.pitchInBytes + pitched.width * element);
}

bool good_texture(const CUDA_TEXTURE_DESC& texture, CUresourcetype type) {
    if ((texture.flags & ~kAllTextureFlags) != 0)
        return false;
    for (const CUaddress_mode mode : texture.addressMode)
        if (static_cast<unsigned>(mode) > CU_TR_ADDRESS_MODE_BORDER)
            return false;
    if (static_cast<unsigned>(texture.filterMode) > CU_TR_FILTER_MODE_LINEAR ||
        static_cast<unsigned>(texture.mipmapFilterMode) > CU_TR_FILTER_MODE_LINEAR)
        return false;
    // Documented: mipmapped arrays are read by normalized coordinates alone.
    return type != CU_RESOURCE_TYPE_MIPMAPPED_ARRAY || (texture.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
}

bool good_view(const CUDA_RESOURCE_VIEW_DESC& view, CUresourcetype type) {
    const bool array = type == CU_RESOURCE_TYPE_ARRAY || type == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    return array && static_cast<unsigned>(view.format) <= CU_RES_VIEW_FORMAT_UNSIGNED_BC7 &&
           view.firstMipmapLevel <= view.lastMipmapLevel && view.firstLayer <= view.lastLayer &&
           (type == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY || view.lastMipmapLevel == 0);
}

}  // namespace

namespace cuslice::fake {

CUresult check_resource(const Context& context, const CUDA_RESOURCE_DESC& resource) {
    if (resource.flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    switch (resource.resType) {
        case CU_RESOURCE_TYPE_ARRAY: {
            const Array* array = arrays.find(resource.res.array.hArray);
            return array != nullptr && array->gpu == context.gpu ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        }
        case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: {
            const MipmappedArray* array = mipmapped_arrays.find(resource.res.mipmap.hMipmappedArray);
            return array != nullptr && array->gpu == context.gpu ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        }
        case CU_RESOURCE_TYPE_LINEAR:
            return check_linear(context, resource);
        case CU_RESOURCE_TYPE_PITCH2D:
            return check_pitched(context, resource);
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

}  // namespace cuslice::fake

CUSLICE_ENTRY(cuTexObjectCreate, out, resource, texture, view) {
    if (out == nullptr || resource == nullptr || texture == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_CURRENT(context);
    CUSLICE_TRY(check_resource(*context, *resource));
    if (!good_texture(*texture, resource->resType) || (view != nullptr && !good_view(*view, resource->resType)))
        return CUDA_ERROR_INVALID_VALUE;
    Texture made{context->handle, *resource, *texture, view != nullptr};
    if (view != nullptr)
        made.view = *view;
    *out = textures.create(made).first;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuTexObjectDestroy, texture) {
    return textures.destroy(texture) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUSLICE_ENTRY(cuTexObjectGetResourceDesc, out, handle) {
    CUSLICE_FIND_ARGUMENT(texture, textures, handle);
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    *out = texture->resource;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuTexObjectGetTextureDesc, out, handle) {
    CUSLICE_FIND_ARGUMENT(texture, textures, handle);
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    *out = texture->texture;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuTexObjectGetResourceViewDesc, out, handle) {
    CUSLICE_FIND_ARGUMENT(texture, textures, handle);
    if (out == nullptr || !texture->has_view)
        return CUDA_ERROR_INVALID_VALUE;
    *out = texture->view;
    return CUDA_SUCCESS;
}
