// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "shim/driver/box.h"
#include "shim/driver/checked.h"

namespace cuslice {

// Bounds checks for copies and memsets in a cache. The driver checks the bounds of its own allocations, but a segment
// is one of these with many blocks in it, so it can't tell when a copy runs out of its block. Ranges that begin in no
// segment, and empty ones, are left to the driver.

inline bool in_bounds(CUdeviceptr address, uint64_t bytes) {
    if (!bytes)
        return true;
    CopyGpus::note(address);
    return address_map().holds(address, bytes);
}

inline bool in_bounds(const ByteRange& range) { return in_bounds(range.address, range.bytes); }

// `count` elements of `bytes`.
inline bool in_bounds(CUdeviceptr address, uint64_t count, uint64_t bytes) {
    uint64_t all = 0;
    return in_bounds(address, __builtin_mul_overflow(count, bytes, &all) ? ~0ull : all);
}

// A box that begins at a place in what lies at `address`.
inline bool in_bounds(CUdeviceptr address, uint64_t x, uint64_t y, uint64_t z, const Box& box) {
    return in_bounds(range_of(address, x, y, z, box));
}

// True if a memset of rows stays in bounds. `width`: elements of `bytes` bytes in each row.
inline bool rows_in_bounds(CUdeviceptr address, uint64_t pitch, uint64_t width, uint64_t bytes, uint64_t rows) {
    return in_bounds(range_of_rows(address, pitch, width, bytes, rows));
}

inline bool is_device_memory(CUmemorytype type) {
    return type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED;
}

// Both ends of what CUDA_MEMCPY3D describes; the driver's to answer if there is none.
template <typename Copy>
bool box_in_bounds(const Copy* copy) {
    if (!copy)
        return true;
    const auto box = [&](uint64_t pitch, uint64_t layer) {
        return Box{copy->WidthInBytes, copy->Height, copy->Depth, pitch, layer};
    };
    return (!is_device_memory(copy->srcMemoryType) || in_bounds(copy->srcDevice, copy->srcXInBytes, copy->srcY,
                                                                copy->srcZ, box(copy->srcPitch, copy->srcHeight))) &&
           (!is_device_memory(copy->dstMemoryType) || in_bounds(copy->dstDevice, copy->dstXInBytes, copy->dstY,
                                                                copy->dstZ, box(copy->dstPitch, copy->dstHeight)));
}

}  // namespace cuslice
