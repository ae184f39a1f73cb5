// SPDX-License-Identifier: Apache-2.0
// Tensor maps: checked, and written as an opaque value that no kernel reads here.

#include <cstdint>

#include "fake/driver/api_prologue.h"
#include "fake/driver/context.h"
#include "fake/driver/gpu.h"
#include "fake/driver/tensor_map.h"
#include "fake/driver/work_fault.h"

using namespace cuslice::fake;

namespace {

constexpr uintptr_t kMapAlignment = 64;
constexpr unsigned kMostInBox = 256, kMostChannels = 256, kMostPixels = 1024;

bool is_place(const CUtensorMap* map) {
    return map != nullptr && reinterpret_cast<uintptr_t>(map) % kMapAlignment == 0;
}

uint64_t* words_of(CUtensorMap* map) { return reinterpret_cast<uint64_t*>(map); }

/// Calls f(gpu) of the current context, which a fault of earlier work fails, for a place for the map, on a GPU of this
/// compute capability or a later one.
template <typename F>
CUresult with_gpu_from(int major, const CUtensorMap* map, F&& f) {
    Context* context = nullptr;
    CUSLICE_TRY(current_context(context));
    CUSLICE_TRY(fault_of_work(*context));
    if (context->gpu->spec.major < major)
        return CUDA_ERROR_NOT_SUPPORTED;
    return is_place(map) ? f(context->gpu->spec) : CUDA_ERROR_INVALID_VALUE;
}

CUresult encode(const GpuSpec& gpu, CUtensorMap* out, const TensorMap& map, unsigned inner) {
    const CUresult result = check_tensor_map(gpu, map, inner);
    if (result == CUDA_SUCCESS)
        write_tensor_map(words_of(out), map);
    return result;
}

bool good_box(const TensorMap& map, const unsigned* box) {
    const TensorElement* element = tensor_element(map.type);
    if (box == nullptr || element == nullptr || map.rank > 5)
        return false;
    for (unsigned i = 0; i < map.rank; i++)
        if (box[i] == 0 || box[i] > kMostInBox)
            return false;
    return map.rank == 0 || map.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || box[0] * element->bits % 128 == 0;
}

/// True if the corners leave something of a dimension between them.
bool leaves_some(cuuint64_t dimension, int lower, int upper) {
    return static_cast<int64_t>(dimension) - lower + upper > 0;
}

/// Each corner within its range, and a box that isn't empty. The manual names the corners' order {D, H, W}, while the
/// dimensions begin with the channels and W: a box is refused that is empty in either order.
bool good_corners(const TensorMap& map, const int* lower, const int* upper) {
    constexpr int kEnds[] = {32768, 128, 16};
    if (lower == nullptr || upper == nullptr || map.dimensions == nullptr || map.rank < 3 || map.rank > 5)
        return false;
    const unsigned count = map.rank - 2;
    bool forwards = true, backwards = true;
    for (unsigned i = 0; i < count; i++) {
        const int end = kEnds[count - 1];
        if (lower[i] < -end || lower[i] >= end || upper[i] < -end || upper[i] >= end)
            return false;
        forwards = forwards && leaves_some(map.dimensions[1 + i], lower[i], upper[i]);
        backwards = backwards && leaves_some(map.dimensions[count - i], lower[i], upper[i]);
    }
    return forwards || backwards;
}

bool good_pixels(unsigned channels, unsigned pixels) {
    return channels > 0 && channels <= kMostChannels && pixels > 0 && pixels <= kMostPixels;
}

}  // namespace

CUSLICE_ENTRY(cuTensorMapEncodeTiled, out, type, rank, address, dimensions, strides, box, steps, interleave, swizzle,
              promotion, fill) {
    return with_gpu_from(9, out, [&](const GpuSpec& gpu) {
        const TensorMap map{type, rank, address, dimensions, strides, steps, interleave, swizzle, promotion, fill};
        return good_box(map, box) && rank > 0 ? encode(gpu, out, map, box[0]) : CUDA_ERROR_INVALID_VALUE;
    });
}

CUSLICE_ENTRY(cuTensorMapEncodeIm2col, out, type, rank, address, dimensions, strides, lower, upper, channels, pixels,
              steps, interleave, swizzle, promotion, fill) {
    return with_gpu_from(9, out, [&](const GpuSpec& gpu) {
        const TensorMap map{type, rank, address, dimensions, strides, steps, interleave, swizzle, promotion, fill};
        return good_corners(map, lower, upper) && good_pixels(channels, pixels) ? encode(gpu, out, map, channels)
                                                                                : CUDA_ERROR_INVALID_VALUE;
    });
}

CUSLICE_ENTRY(cuTensorMapEncodeIm2colWide, out, type, rank, address, dimensions, strides, lower, upper, channels,
              pixels, steps, interleave, mode, swizzle, promotion, fill) {
    return with_gpu_from(10, out, [&](const GpuSpec& gpu) {
        const TensorMap map{type, rank, address, dimensions, strides, steps, interleave, swizzle, promotion, fill};
        const bool all_pixels = mode == CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128;
        const bool known_swizzle = swizzle == CU_TENSOR_MAP_SWIZZLE_64B || swizzle == CU_TENSOR_MAP_SWIZZLE_128B ||
                                   swizzle == CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B;
        constexpr int kEnd = 32768;
        if (static_cast<unsigned>(mode) > CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128 || !known_swizzle ||
            !good_pixels(channels, all_pixels ? 1 : pixels) || dimensions == nullptr || rank < 3 || lower < -kEnd ||
            lower >= kEnd || upper < -kEnd || upper >= kEnd || !leaves_some(dimensions[1], lower, upper))
            return CUDA_ERROR_INVALID_VALUE;
        return encode(gpu, out, map, channels);
    });
}

CUSLICE_ENTRY(cuTensorMapReplaceAddress, map, address) {
    return with_gpu_from(9, map, [&](const GpuSpec&) { return replace_tensor_address(words_of(map), address); });
}
