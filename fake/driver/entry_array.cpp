// Arrays: create, describe, destroy.

#include "fake/driver/array.h"
#include "fake/driver/gate.h"
#include "fake/driver/state.h"

using namespace cuslice::fake;

namespace cuslice::fake {

constinit ArrayTable arrays;

}  // namespace cuslice::fake

namespace {

constexpr unsigned all_flags = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP |
                               CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_COLOR_ATTACHMENT | CUDA_ARRAY3D_SPARSE;

std::size_t format_bytes(CUarray_format format) {
    switch (format) {
        case CU_AD_FORMAT_UNSIGNED_INT8:
        case CU_AD_FORMAT_SIGNED_INT8:
            return 1;
        case CU_AD_FORMAT_UNSIGNED_INT16:
        case CU_AD_FORMAT_SIGNED_INT16:
        case CU_AD_FORMAT_HALF:
            return 2;
        case CU_AD_FORMAT_UNSIGNED_INT32:
        case CU_AD_FORMAT_SIGNED_INT32:
        case CU_AD_FORMAT_FLOAT:
            return 4;
        default:
            return 0;
    }
}

}  // namespace

namespace cuslice::fake {

CUresult shape_array(const CUDA_ARRAY3D_DESCRIPTOR& descriptor, Array& array) {
    const unsigned channels = descriptor.NumChannels;
    if (descriptor.Width == 0 || (channels != 1 && channels != 2 && channels != 4)) return CUDA_ERROR_INVALID_VALUE;
    if (descriptor.Width > 131072 || descriptor.Height > 131072 || descriptor.Depth > 16384)
        return CUDA_ERROR_INVALID_VALUE;
    if (descriptor.Height == 0 && descriptor.Depth != 0 && (descriptor.Flags & CUDA_ARRAY3D_LAYERED) == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if ((descriptor.Flags & ~all_flags) != 0) CUSLICE_UNSUPPORTED("deferred arrays and those for video");
    const std::size_t bytes = format_bytes(descriptor.Format);
    if (bytes == 0) CUSLICE_UNSUPPORTED("arrays of planar, normalized and block-compressed formats");
    array.descriptor = descriptor;
    array.element = bytes * channels;
    array.row = descriptor.Width * array.element;
    array.rows = std::max<std::size_t>(descriptor.Height, 1);
    array.layers = std::max<std::size_t>(descriptor.Depth, 1);
    return CUDA_SUCCESS;
}

void free_array_block(Gpu& gpu, Address at) {
    const std::lock_guard hold(gpu.lock);
    const Block block = gpu.device.heap.at(at);
    if (block) gpu.free_block(gpu.device, block);
}

}  // namespace cuslice::fake

namespace {

CUresult create(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
    Context* context = nullptr;
    if (const CUresult bad = current_context(context); bad != CUDA_SUCCESS) return bad;
    Array array;
    if (const CUresult bad = shape_array(descriptor, array); bad != CUDA_SUCCESS) return bad;
    array.gpu = context->gpu;
    array.context = context->handle;
    array.sparse = (descriptor.Flags & CUDA_ARRAY3D_SPARSE) != 0;
    if (array.sparse) {
        if (descriptor.Height == 0) return CUDA_ERROR_INVALID_VALUE;  // documented: 2D, 2D layered or 3D
        *out = arrays.create(array).first;
        return CUDA_SUCCESS;
    }
    const CUresult bad =
        context->gpu->allocate(context->gpu->device, array.bytes(), BlockKind::Array, context->number, array.at);
    if (bad != CUDA_SUCCESS) return bad;
    array.block = array.at;
    *out = arrays.create(array).first;
    return CUDA_SUCCESS;
}

CUDA_ARRAY3D_DESCRIPTOR wide(std::size_t width, std::size_t height, std::size_t depth, CUarray_format format,
                             unsigned channels, unsigned flags) {
    CUDA_ARRAY3D_DESCRIPTOR descriptor{};
    descriptor.Width = width;
    descriptor.Height = height;
    descriptor.Depth = depth;
    descriptor.Format = format;
    descriptor.NumChannels = channels;
    descriptor.Flags = flags;
    return descriptor;
}

template <typename Descriptor>
CUresult create_2d(CUarray* out, const Descriptor* d) {
    if (out == nullptr || d == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return create(out, wide(d->Width, d->Height, 0, d->Format, d->NumChannels, 0));
}

template <typename Descriptor>
CUresult create_3d(CUarray* out, const Descriptor* d) {
    if (out == nullptr || d == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return create(out, wide(d->Width, d->Height, d->Depth, d->Format, d->NumChannels, d->Flags));
}

template <typename Descriptor>
CUresult describe_2d(Descriptor* out, CUarray handle) {
    const Array* array = arrays.find(handle);
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    using Number = decltype(out->Width);
    out->Width = static_cast<Number>(array->descriptor.Width);
    out->Height = static_cast<Number>(array->descriptor.Height);
    out->Format = array->descriptor.Format;
    out->NumChannels = array->descriptor.NumChannels;
    return CUDA_SUCCESS;
}

template <typename Descriptor>
CUresult describe_3d(Descriptor* out, CUarray handle) {
    if (const CUresult bad = describe_2d(out, handle); bad != CUDA_SUCCESS) return bad;
    const Array& array = *arrays.find(handle);
    out->Depth = static_cast<decltype(out->Depth)>(array.descriptor.Depth);
    out->Flags = array.descriptor.Flags;
    return CUDA_SUCCESS;
}

}  // namespace

namespace cuslice::fake {

void end_arrays(Context& context) {
    arrays.each([&](CUarray handle, Array& array) {
        if (array.context != context.handle) return;
        if (array.sparse) unbind_tiles(handle);
        if (!array.is_level && !array.sparse) free_array_block(*array.gpu, array.block);
        arrays.destroy(handle);
    });
    mipmapped_arrays.each([&](CUmipmappedArray handle, MipmappedArray& mipmap) {
        if (mipmap.context != context.handle) return;
        free_array_block(*mipmap.gpu, mipmap.block);
        mipmapped_arrays.destroy(handle);
    });
}

}  // namespace cuslice::fake

CUresult CUDAAPI cuArrayCreate(CUarray* out, const CUDA_ARRAY_DESCRIPTOR_v1* descriptor) {
    CUSLICE_ENTER(cuArrayCreate)
    return create_2d(out, descriptor);
}

CUresult CUDAAPI cuArrayCreate_v2(CUarray* out, const CUDA_ARRAY_DESCRIPTOR* descriptor) {
    CUSLICE_ENTER(cuArrayCreate_v2)
    return create_2d(out, descriptor);
}

CUresult CUDAAPI cuArray3DCreate(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR_v1* descriptor) {
    CUSLICE_ENTER(cuArray3DCreate)
    return create_3d(out, descriptor);
}

CUresult CUDAAPI cuArray3DCreate_v2(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
    CUSLICE_ENTER(cuArray3DCreate_v2)
    return create_3d(out, descriptor);
}

CUresult CUDAAPI cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1* out, CUarray array) {
    CUSLICE_ENTER(cuArrayGetDescriptor)
    return describe_2d(out, array);
}

CUresult CUDAAPI cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* out, CUarray array) {
    CUSLICE_ENTER(cuArrayGetDescriptor_v2)
    return describe_2d(out, array);
}

CUresult CUDAAPI cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1* out, CUarray array) {
    CUSLICE_ENTER(cuArray3DGetDescriptor)
    return describe_3d(out, array);
}

CUresult CUDAAPI cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* out, CUarray array) {
    CUSLICE_ENTER(cuArray3DGetDescriptor_v2)
    return describe_3d(out, array);
}

CUresult CUDAAPI cuArrayDestroy(CUarray handle) {
    CUSLICE_ENTER(cuArrayDestroy)
    const std::lock_guard hold(driver().lock);
    Array* array = arrays.find(handle);
    if (array == nullptr || array->is_level) return CUDA_ERROR_INVALID_HANDLE;
    array->sparse ? unbind_tiles(handle) : free_array_block(*array->gpu, array->block);
    arrays.destroy(handle);
    return CUDA_SUCCESS;
}
