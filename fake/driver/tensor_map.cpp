// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/tensor_map.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace cuslice::fake {
namespace {

constexpr unsigned kMostDimensions = 5;
constexpr uint64_t kMostElements = uint64_t{1} << 32, kStrideEnd = uint64_t{1} << 40;
constexpr unsigned kMostStep = 8, kLine = 16;

// The opaque value's parts, in words of 8 bytes. Programs may copy it, so that nothing here knows where it is.
constexpr uint64_t kMark = 0x70614d726f736e65;
enum Word { is_map, address, alignment, kind, first_dimension, first_stride = first_dimension + kMostDimensions };
static_assert(first_stride + kMostDimensions - 1 <= CU_TENSOR_MAP_NUM_QWORDS);

uint64_t number_of(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

/// The bytes within which a swizzle moves chunks; 0 for none.
unsigned span_of(CUtensorMapSwizzle swizzle) {
    switch (swizzle) {
        case CU_TENSOR_MAP_SWIZZLE_NONE:
            return 0;
        case CU_TENSOR_MAP_SWIZZLE_32B:
            return 32;
        case CU_TENSOR_MAP_SWIZZLE_64B:
            return 64;
        default:
            return 128;
    }
}

bool good_enumerators(const GpuSpec& gpu, const TensorMap& map, const TensorElement& element) {
    if (static_cast<unsigned>(map.interleave) > CU_TENSOR_MAP_INTERLEAVE_32B ||
        static_cast<unsigned>(map.swizzle) > CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B ||
        static_cast<unsigned>(map.promotion) > CU_TENSOR_MAP_L2_PROMOTION_L2_256B ||
        static_cast<unsigned>(map.fill) > CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA)
        return false;
    if (gpu.major < 10 && (element.is_packed || map.swizzle > CU_TENSOR_MAP_SWIZZLE_128B))
        return false;
    return map.fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE || element.is_float;
}

bool good_packing(const TensorMap& map) {
    if (map.type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B)
        return map.dimensions[0] % 2 == 0;
    if (map.dimensions[0] % 128 != 0)
        return false;
    switch (map.swizzle) {
        case CU_TENSOR_MAP_SWIZZLE_NONE:
        case CU_TENSOR_MAP_SWIZZLE_128B:
        case CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B:
            break;
        case CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B:
            if (map.type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B)
                break;
            return false;
        default:
            return false;
    }
    return map.type != CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B || map.interleave == CU_TENSOR_MAP_INTERLEAVE_NONE;
}

bool good_layout(const TensorMap& map) {
    const uint64_t unit = tensor_alignment(map);
    if (map.address == nullptr || number_of(map.address) % unit != 0)
        return false;
    for (unsigned i = 0; i < map.rank; i++)
        if (map.dimensions[i] == 0 || map.dimensions[i] > kMostElements)
            return false;
    // A stride of 0 breaks no rule of these: a dimension that is one element long has often no other.
    for (unsigned i = 0; i + 1 < map.rank; i++)
        if (map.strides[i] % unit != 0 || map.strides[i] >= kStrideEnd)
            return false;
    const bool first_counts = map.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE;
    for (unsigned i = first_counts ? 0 : 1; i < map.rank; i++)
        if (map.steps[i] == 0 || map.steps[i] > kMostStep)
            return false;
    return true;
}

}  // namespace

const TensorElement* tensor_element(CUtensorMapDataType type) {
    static constexpr TensorElement kElements[] = {
        {8, false, false, false},   // UINT8
        {16, false, false, false},  // UINT16
        {32, false, false, false},  // UINT32
        {32, false, false, false},  // INT32
        {64, false, false, false},  // UINT64
        {64, false, false, false},  // INT64
        {16, true, false, false},   // FLOAT16
        {32, true, false, false},   // FLOAT32
        {64, true, false, false},   // FLOAT64
        {16, true, false, false},   // BFLOAT16
        {32, true, false, false},   // FLOAT32_FTZ
        {32, true, false, false},   // TFLOAT32
        {32, true, false, false},   // TFLOAT32_FTZ
        {4, false, true, false},    // 16U4_ALIGN8B
        {4, false, true, true},     // 16U4_ALIGN16B
        {6, false, true, true},     // 16U6_ALIGN16B
    };
    static_assert(std::size(kElements) == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B + 1);
    return static_cast<unsigned>(type) < std::size(kElements) ? &kElements[type] : nullptr;
}

unsigned tensor_alignment(const TensorMap& map) {
    const TensorElement* element = tensor_element(map.type);
    const bool wide = map.interleave == CU_TENSOR_MAP_INTERLEAVE_32B || (element != nullptr && element->is_padded);
    return wide ? 2 * kLine : kLine;
}

CUresult check_tensor_map(const GpuSpec& gpu, const TensorMap& map, unsigned inner) {
    const TensorElement* element = tensor_element(map.type);
    if (element == nullptr || map.rank == 0 || map.rank > kMostDimensions || map.dimensions == nullptr ||
        (map.rank > 1 && map.strides == nullptr) || map.steps == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    if (!good_enumerators(gpu, map, *element) || !good_layout(map))
        return CUDA_ERROR_INVALID_VALUE;
    if (element->is_packed && !good_packing(map))
        return CUDA_ERROR_INVALID_VALUE;
    if (element->is_padded && inner != 128)
        return CUDA_ERROR_INVALID_VALUE;
    const uint64_t bits = uint64_t{inner} * element->bits;
    switch (map.interleave) {
        case CU_TENSOR_MAP_INTERLEAVE_NONE:
            return map.swizzle == CU_TENSOR_MAP_SWIZZLE_NONE || bits <= uint64_t{8} * span_of(map.swizzle)
                       ? CUDA_SUCCESS
                       : CUDA_ERROR_INVALID_VALUE;
        case CU_TENSOR_MAP_INTERLEAVE_32B:
            if (map.swizzle != CU_TENSOR_MAP_SWIZZLE_32B)
                return CUDA_ERROR_INVALID_VALUE;
            [[fallthrough]];
        default:
            return map.rank >= 3 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
}

void write_tensor_map(uint64_t* out, const TensorMap& map) {
    uint64_t made[CU_TENSOR_MAP_NUM_QWORDS] = {};
    made[is_map] = kMark;
    made[address] = number_of(map.address);
    made[alignment] = tensor_alignment(map);
    made[kind] = map.type | map.rank << 8 | map.interleave << 16 | map.swizzle << 20 | map.promotion << 24 |
                 static_cast<uint64_t>(map.fill) << 28;
    std::copy_n(map.dimensions, map.rank, made + first_dimension);
    std::copy_n(map.strides, map.rank - 1, made + first_stride);
    std::copy(std::begin(made), std::end(made), out);
}

CUresult replace_tensor_address(uint64_t* map, void* place) {
    if (map[is_map] != kMark || place == nullptr || number_of(place) % map[alignment] != 0)
        return CUDA_ERROR_INVALID_VALUE;
    map[address] = number_of(place);
    return CUDA_SUCCESS;
}

}  // namespace cuslice::fake
