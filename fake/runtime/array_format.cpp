// SPDX-License-Identifier: Apache-2.0
#include "fake/runtime/array_format.h"

namespace cuslice::fake {
namespace {

struct Format {
    cudaChannelFormatKind kind;
    int bits;
    CUarray_format format;
};

constexpr Format kFormats[] = {
#define CUSLICE_ARRAY_FORMAT(format, kind, bits) {cudaChannelFormatKind##kind, bits, CU_AD_FORMAT_##format},
#include "virtual_gpu/driver/array_formats.def"
};

}  // namespace

cudaError_t to_driver_format(const cudaChannelFormatDesc& description, CUarray_format* format, unsigned* channels) {
    const int bits[] = {description.x, description.y, description.z, description.w};
    unsigned used = 0;
    while (used < 4 && bits[used] == bits[0])
        ++used;
    for (unsigned i = used; i < 4; ++i) {
        if (bits[i] != 0)
            return cudaErrorInvalidChannelDescriptor;
    }
    if (used == 3)
        return cudaErrorInvalidChannelDescriptor;
    for (const Format& known : kFormats) {
        if (known.kind == description.f && known.bits == bits[0]) {
            *format = known.format;
            *channels = used;
            return cudaSuccess;
        }
    }
    return cudaErrorInvalidChannelDescriptor;
}

cudaError_t from_driver_format(CUarray_format format, unsigned channels, cudaChannelFormatDesc* description) {
    for (const Format& known : kFormats) {
        if (known.format == format) {
            const auto bits = [&](unsigned channel) { return channel < channels ? known.bits : 0; };
            *description = {bits(0), bits(1), bits(2), bits(3), known.kind};
            return cudaSuccess;
        }
    }
    return cudaErrorInvalidChannelDescriptor;
}

cudaError_t element_bytes(cudaArray_t array, size_t* bytes) {
    CUDA_ARRAY3D_DESCRIPTOR found{};
    cudaChannelFormatDesc description{};
    CUSLICE_TRY(as_error(CU(cuArray3DGetDescriptor, 3020)(&found, reinterpret_cast<CUarray>(array))));
    CUSLICE_TRY(from_driver_format(found.Format, found.NumChannels, &description));
    *bytes = static_cast<size_t>(description.x + description.y + description.z + description.w) / 8;
    return cudaSuccess;
}

}  // namespace cuslice::fake
