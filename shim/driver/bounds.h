#pragma once
#include "shim/driver/checked.h"

namespace cuslice {

// Whether a copy or a memset stays within the block of a cache that it begins in. The driver sees to the bounds of its
// own allocations, and a segment is one of these with many blocks in it. What begins in no segment, and what is empty,
// is the driver's to answer.

inline bool in_bounds(CUdeviceptr address, std::uint64_t bytes) {
    if (!bytes) return true;
    CopyGpus::note(address);
    return process().caches().map().holds(address, bytes);
}

// `count` elements of `bytes`.
inline bool in_bounds(CUdeviceptr address, std::uint64_t count, std::uint64_t bytes) {
    std::uint64_t all = 0;
    return in_bounds(address, __builtin_mul_overflow(count, bytes, &all) ? ~0ull : all);
}

// Rows in layers: `pitch` is bytes from a row to the next, `layer` rows from a layer to the next.
struct Box {
    std::uint64_t width = 0, rows = 1, layers = 1;  // width in bytes
    std::uint64_t pitch = 0, layer = 0;

    // Bytes before a row; false if that is more than a number holds.
    bool before(std::uint64_t row, std::uint64_t in_layer, std::uint64_t* bytes) const {
        std::uint64_t number = 0;
        return !__builtin_mul_overflow(in_layer, layer, &number) && !__builtin_add_overflow(number, row, &number) &&
               !__builtin_mul_overflow(number, pitch, bytes);
    }
};

// From the first byte of the box to its last, and so also what a pitch leaves out in between.
inline bool in_bounds(CUdeviceptr address, const Box& box) {
    if (!box.width || !box.rows || !box.layers) return true;
    std::uint64_t bytes = 0;
    if (!box.before(box.rows - 1, box.layers - 1, &bytes) || __builtin_add_overflow(bytes, box.width, &bytes))
        bytes = ~0ull;
    return in_bounds(address, bytes);
}

// The same of a box that begins at a place in what lies at `address`, where a pitch or a layer of 0 means that they
// touch each other.
inline bool in_bounds(CUdeviceptr address, std::uint64_t x, std::uint64_t y, std::uint64_t z, Box box) {
    if (!box.width || !box.rows || !box.layers) return true;
    std::uint64_t first = 0;
    if (!box.pitch) box.pitch = x + box.width;
    if (!box.layer) box.layer = y + box.rows;
    if (!box.before(y, z, &first) || __builtin_add_overflow(first, x, &first) ||
        __builtin_add_overflow(address, first, &first))
        return in_bounds(address, ~0ull);
    return in_bounds(first, box);
}

// What a memset of rows fills: `width` elements of `bytes` in each.
inline bool rows_in_bounds(CUdeviceptr address, std::uint64_t pitch, std::uint64_t width, std::uint64_t bytes,
                           std::uint64_t rows) {
    Box box{0, rows, 1, pitch, 0};
    if (__builtin_mul_overflow(width, bytes, &box.width)) box.width = ~0ull;
    return in_bounds(address, box);
}

inline bool is_device_memory(CUmemorytype type) {
    return type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED;
}

// Both ends of what CUDA_MEMCPY3D describes; the driver's to answer if there is none.
template <typename Copy>
bool box_in_bounds(const Copy* copy) {
    if (!copy) return true;
    const auto box = [&](std::uint64_t pitch, std::uint64_t layer) {
        return Box{copy->WidthInBytes, copy->Height, copy->Depth, pitch, layer};
    };
    return (!is_device_memory(copy->srcMemoryType) || in_bounds(copy->srcDevice, copy->srcXInBytes, copy->srcY,
                                                                copy->srcZ, box(copy->srcPitch, copy->srcHeight))) &&
           (!is_device_memory(copy->dstMemoryType) || in_bounds(copy->dstDevice, copy->dstXInBytes, copy->dstY,
                                                                copy->dstZ, box(copy->dstPitch, copy->dstHeight)));
}

}  // namespace cuslice
