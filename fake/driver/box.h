// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies of boxes: rows of bytes in layers, each end in host memory, device memory or an array.

#include "fake/driver/transfer.h"

namespace cuslice::fake {

/// One end of a copy, as CUDA_MEMCPY3D describes it. Pitch is in bytes, height in rows.
struct BoxEnd {
    CUmemorytype type = CU_MEMORYTYPE_HOST;
    Address address = 0;  // of host, device and unified memory
    CUarray array = nullptr;
    size_t x = 0, y = 0, z = 0;  // x in bytes
    size_t pitch = 0, height = 0;
    int gpu = accessing_gpu();  // that reaches for it
};

struct Box {
    BoxEnd from, to;
    size_t width = 0, height = 0, depth = 0;  // width in bytes
    bool empty() const { return width == 0 || height == 0 || depth == 0; }
};

/// Checked copy of a box: its task, and the extents of its first row.
struct CheckedBox {
    Task task;
    Extents to, from;
};
/// CUDA_ERROR_INVALID_VALUE if a row of either end doesn't exist. The box isn't empty; a fault is the context's.
CUresult check_box(const Box& box, CUcontext context, CheckedBox& out);
/// Converts the structure to a box whose ends `gpu` accesses. CUDA_ERROR_INVALID_VALUE for levels of mipmapped arrays.
CUresult box_of(const CUDA_MEMCPY3D& copy, int gpu, Box& box);

/// CUDA_ERROR_INVALID_VALUE if a row of either end doesn't exist; nothing is copied then.
CUresult copy_box(const Box& box, const Order& order);

/// Bytes in an array, counted from an offset over its rows: what cuMemcpyAtoH and the like copy. 1D and 2D arrays
/// alone.
CUresult resolve_array_bytes(CUarray handle, size_t offset, size_t size, Access access, Extents& extents);

}  // namespace cuslice::fake
