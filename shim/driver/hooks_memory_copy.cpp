// SPDX-License-Identifier: Apache-2.0
// Copies from and to device memory, in all forms with 64-bit addresses. (What is allocated in the forms of CUDA before
// 3.2 never comes from a cache, and what does has no address that these could be given.)
#include "shim/driver/bounds.h"

namespace cuslice {

namespace {

constexpr auto from_host = [](CUdeviceptr to, const void*, size_t bytes, auto...) { return in_bounds(to, bytes); };
constexpr auto to_host = [](void*, CUdeviceptr from, size_t bytes, auto...) { return in_bounds(from, bytes); };
constexpr auto both = [](CUdeviceptr to, CUdeviceptr from, size_t bytes, auto...) {
    return in_bounds(to, bytes) && in_bounds(from, bytes);
};
constexpr auto peers = [](CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes, auto...) {
    return in_bounds(to, bytes) && in_bounds(from, bytes);
};
constexpr auto to_array = [](CUarray, size_t, CUdeviceptr from, size_t bytes) { return in_bounds(from, bytes); };
constexpr auto from_array = [](CUdeviceptr to, CUarray, size_t, size_t bytes) { return in_bounds(to, bytes); };

constexpr auto rows = [](const CUDA_MEMCPY2D* copy, auto...) {
    if (!copy)
        return true;
    const auto box = [&](size_t pitch) { return Box{copy->WidthInBytes, copy->Height, 1, pitch, 0}; };
    return (!is_device_memory(copy->srcMemoryType) ||
            in_bounds(copy->srcDevice, copy->srcXInBytes, copy->srcY, 0, box(copy->srcPitch))) &&
           (!is_device_memory(copy->dstMemoryType) ||
            in_bounds(copy->dstDevice, copy->dstXInBytes, copy->dstY, 0, box(copy->dstPitch)));
};
constexpr auto boxes = [](const auto* copy, auto...) { return box_in_bounds(copy); };

// All of a batch is refused if one of it is, as the driver refuses it. Where it asks which, it is told.
bool batch_in_bounds(const CUdeviceptr* to, const CUdeviceptr* from, const size_t* bytes, size_t count,
                     size_t* failed) {
    if (!to || !from || !bytes)
        return true;
    for (size_t i = 0; i < count; i++) {
        if (both(to[i], from[i], bytes[i]))
            continue;
        if (failed)
            *failed = i;
        return false;
    }
    return true;
}

// The size of an array's elements is the driver's to know; they are of a byte at least.
bool operand_in_bounds(const CUmemcpy3DOperand& operand, const CUextent3D& extent) {
    if (operand.type != CU_MEMCPY_OPERAND_TYPE_POINTER)
        return true;
    const auto& at = operand.op.ptr;
    return in_bounds(at.ptr, 0, 0, 0, {extent.width, extent.height, extent.depth, at.rowLength, at.layerHeight});
}

bool batch_in_bounds(const CUDA_MEMCPY3D_BATCH_OP* copies, size_t count, size_t* failed) {
    if (!copies)
        return true;
    for (size_t i = 0; i < count; i++) {
        if (operand_in_bounds(copies[i].src, copies[i].extent) && operand_in_bounds(copies[i].dst, copies[i].extent))
            continue;
        if (failed)
            *failed = i;
        return false;
    }
    return true;
}

constexpr auto batch_v1 = [](CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count, CUmemcpyAttributes*,
                             size_t*, size_t, size_t* failed,
                             CUstream) { return batch_in_bounds(to, from, bytes, count, failed); };
constexpr auto batch = [](CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count, auto...) {
    return batch_in_bounds(to, from, bytes, count, nullptr);
};
constexpr auto box_batch_v1 = [](size_t count, CUDA_MEMCPY3D_BATCH_OP* copies, size_t* failed, auto...) {
    return batch_in_bounds(copies, count, failed);
};
constexpr auto box_batch = [](size_t count, CUDA_MEMCPY3D_BATCH_OP* copies, auto...) {
    return batch_in_bounds(copies, count, nullptr);
};

}  // namespace

CUSLICE_CHECKED(cuMemcpyHtoD_v2, from_host)
CUSLICE_CHECKED(cuMemcpyHtoD_v2_ptds, from_host)
CUSLICE_CHECKED(cuMemcpyHtoDAsync_v2, from_host)
CUSLICE_CHECKED(cuMemcpyHtoDAsync_v2_ptsz, from_host)
CUSLICE_CHECKED(cuMemcpyDtoH_v2, to_host)
CUSLICE_CHECKED(cuMemcpyDtoH_v2_ptds, to_host)
CUSLICE_CHECKED(cuMemcpyDtoHAsync_v2, to_host)
CUSLICE_CHECKED(cuMemcpyDtoHAsync_v2_ptsz, to_host)
CUSLICE_CHECKED(cuMemcpyDtoD_v2, both)
CUSLICE_CHECKED(cuMemcpyDtoD_v2_ptds, both)
CUSLICE_CHECKED(cuMemcpyDtoDAsync_v2, both)
CUSLICE_CHECKED(cuMemcpyDtoDAsync_v2_ptsz, both)
CUSLICE_CHECKED(cuMemcpy, both)
CUSLICE_CHECKED(cuMemcpy_ptds, both)
CUSLICE_CHECKED(cuMemcpyAsync, both)
CUSLICE_CHECKED(cuMemcpyAsync_ptsz, both)
CUSLICE_CHECKED(cuMemcpyPeer, peers)
CUSLICE_CHECKED(cuMemcpyPeer_ptds, peers)
CUSLICE_CHECKED(cuMemcpyPeerAsync, peers)
CUSLICE_CHECKED(cuMemcpyPeerAsync_ptsz, peers)
CUSLICE_CHECKED(cuMemcpyDtoA_v2, to_array)
CUSLICE_CHECKED(cuMemcpyDtoA_v2_ptds, to_array)
CUSLICE_CHECKED(cuMemcpyAtoD_v2, from_array)
CUSLICE_CHECKED(cuMemcpyAtoD_v2_ptds, from_array)

CUSLICE_CHECKED(cuMemcpy2D_v2, rows)
CUSLICE_CHECKED(cuMemcpy2D_v2_ptds, rows)
CUSLICE_CHECKED(cuMemcpy2DUnaligned_v2, rows)
CUSLICE_CHECKED(cuMemcpy2DUnaligned_v2_ptds, rows)
CUSLICE_CHECKED(cuMemcpy2DAsync_v2, rows)
CUSLICE_CHECKED(cuMemcpy2DAsync_v2_ptsz, rows)
CUSLICE_CHECKED(cuMemcpy3D_v2, boxes)
CUSLICE_CHECKED(cuMemcpy3D_v2_ptds, boxes)
CUSLICE_CHECKED(cuMemcpy3DAsync_v2, boxes)
CUSLICE_CHECKED(cuMemcpy3DAsync_v2_ptsz, boxes)
CUSLICE_CHECKED(cuMemcpy3DPeer, boxes)
CUSLICE_CHECKED(cuMemcpy3DPeer_ptds, boxes)
CUSLICE_CHECKED(cuMemcpy3DPeerAsync, boxes)
CUSLICE_CHECKED(cuMemcpy3DPeerAsync_ptsz, boxes)

CUSLICE_CHECKED(cuMemcpyBatchAsync, batch_v1)
CUSLICE_CHECKED(cuMemcpyBatchAsync_ptsz, batch_v1)
CUSLICE_CHECKED(cuMemcpyBatchAsync_v2, batch)
CUSLICE_CHECKED(cuMemcpyBatchAsync_v2_ptsz, batch)
CUSLICE_CHECKED(cuMemcpy3DBatchAsync, box_batch_v1)
CUSLICE_CHECKED(cuMemcpy3DBatchAsync_ptsz, box_batch_v1)
CUSLICE_CHECKED(cuMemcpy3DBatchAsync_v2, box_batch)
CUSLICE_CHECKED(cuMemcpy3DBatchAsync_v2_ptsz, box_batch)

}  // namespace cuslice
