// SPDX-License-Identifier: Apache-2.0
// Copies between GPUs, and batches of copies that say where their operands are.
#include "virtual_gpu/split/functions.h"
#include "virtual_gpu/split/physical_copy.h"
#include "virtual_gpu/split/translate.h"

namespace cuslice {

namespace {

CUDA_MEMCPY3D within_one(const CUDA_MEMCPY3D_PEER& copy) {
    CUDA_MEMCPY3D all{};
    all.srcXInBytes = copy.srcXInBytes;
    all.srcY = copy.srcY;
    all.srcZ = copy.srcZ;
    all.srcLOD = copy.srcLOD;
    all.srcMemoryType = copy.srcMemoryType;
    all.srcHost = copy.srcHost;
    all.srcDevice = copy.srcDevice;
    all.srcArray = copy.srcArray;
    all.srcPitch = copy.srcPitch;
    all.srcHeight = copy.srcHeight;
    all.dstXInBytes = copy.dstXInBytes;
    all.dstY = copy.dstY;
    all.dstZ = copy.dstZ;
    all.dstLOD = copy.dstLOD;
    all.dstMemoryType = copy.dstMemoryType;
    all.dstHost = copy.dstHost;
    all.dstDevice = copy.dstDevice;
    all.dstArray = copy.dstArray;
    all.dstPitch = copy.dstPitch;
    all.dstHeight = copy.dstHeight;
    all.WidthInBytes = copy.WidthInBytes;
    all.Height = copy.Height;
    all.Depth = copy.Depth;
    return all;
}

// Between parts of one GPU it is a copy in its memory, else one between the real contexts.
template <typename Between, typename Within>
CUresult copy(Between between, Within within, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
              CUcontext from_context, size_t bytes, auto... stream) {
    if (!to_real(to_context) || !to_real(from_context))
        return CUDA_ERROR_INVALID_CONTEXT;
    return to_context && to_context == from_context ? within(to, from, bytes, stream...)
                                                    : between(to, to_context, from, from_context, bytes, stream...);
}

template <typename Between, typename Within>
CUresult copy_box(Between between, Within within, const CUDA_MEMCPY3D_PEER* box, auto... stream) {
    if (!box)
        return between(box, stream...);
    CUDA_MEMCPY3D_PEER real = *box;
    if (!to_real(real.dstContext) || !to_real(real.srcContext))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!real.dstContext || real.dstContext != real.srcContext)
        return between(&real, stream...);
    const CUDA_MEMCPY3D one = within_one(real);
    return within(&one, stream...);
}

void translate_hints(CUmemcpyAttributes& attributes) {
    to_physical(attributes.srcLocHint);
    to_physical(attributes.dstLocHint);
}

void translate_operand(CUmemcpy3DOperand& operand) {
    if (operand.type == CU_MEMCPY_OPERAND_TYPE_POINTER)
        to_physical(operand.op.ptr.locHint);
}
void translate_box(CUDA_MEMCPY3D_BATCH_OP& box) {
    translate_operand(box.src);
    translate_operand(box.dst);
}

constexpr auto copy_batch = [](auto call, CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                               CUmemcpyAttributes* how, size_t* indices, size_t how_many, auto... rest) {
    return with_copy(how, how_many, translate_hints, [&](CUmemcpyAttributes* real) {
        return call(to, from, sizes, count, real, indices, how_many, rest...);
    });
};
constexpr auto box_batch = [](auto call, size_t count, CUDA_MEMCPY3D_BATCH_OP* boxes, auto... rest) {
    return with_copy(boxes, count, translate_box,
                     [&](CUDA_MEMCPY3D_BATCH_OP* real) { return call(count, real, rest...); });
};

}  // namespace

namespace split_driver {

CUSLICE_SPLIT(cuMemcpyPeer, to, to_context, from, from_context, bytes) {
    return copy(CUSLICE_PHYSICAL(cuMemcpyPeer), CUSLICE_PHYSICAL(cuMemcpyDtoD_v2), to, to_context, from, from_context,
                bytes);
}

CUSLICE_SPLIT(cuMemcpyPeer_ptds, to, to_context, from, from_context, bytes) {
    return copy(CUSLICE_PHYSICAL(cuMemcpyPeer_ptds), CUSLICE_PHYSICAL(cuMemcpyDtoD_v2_ptds), to, to_context, from,
                from_context, bytes);
}

CUSLICE_SPLIT(cuMemcpyPeerAsync, to, to_context, from, from_context, bytes, stream) {
    return copy(CUSLICE_PHYSICAL(cuMemcpyPeerAsync), CUSLICE_PHYSICAL(cuMemcpyDtoDAsync_v2), to, to_context, from,
                from_context, bytes, stream);
}

CUSLICE_SPLIT(cuMemcpyPeerAsync_ptsz, to, to_context, from, from_context, bytes, stream) {
    return copy(CUSLICE_PHYSICAL(cuMemcpyPeerAsync_ptsz), CUSLICE_PHYSICAL(cuMemcpyDtoDAsync_v2_ptsz), to, to_context,
                from, from_context, bytes, stream);
}

CUSLICE_SPLIT(cuMemcpy3DPeer, box) {
    return copy_box(CUSLICE_PHYSICAL(cuMemcpy3DPeer), CUSLICE_PHYSICAL(cuMemcpy3D_v2), box);
}

CUSLICE_SPLIT(cuMemcpy3DPeer_ptds, box) {
    return copy_box(CUSLICE_PHYSICAL(cuMemcpy3DPeer_ptds), CUSLICE_PHYSICAL(cuMemcpy3D_v2_ptds), box);
}

CUSLICE_SPLIT(cuMemcpy3DPeerAsync, box, stream) {
    return copy_box(CUSLICE_PHYSICAL(cuMemcpy3DPeerAsync), CUSLICE_PHYSICAL(cuMemcpy3DAsync_v2), box, stream);
}

CUSLICE_SPLIT(cuMemcpy3DPeerAsync_ptsz, box, stream) {
    return copy_box(CUSLICE_PHYSICAL(cuMemcpy3DPeerAsync_ptsz), CUSLICE_PHYSICAL(cuMemcpy3DAsync_v2_ptsz), box, stream);
}

CUSLICE_SPLIT_FORM(cuMemcpyBatchAsync, copy_batch, to, from, sizes, count, how, indices, how_many, failed, stream)
CUSLICE_SPLIT_FORM(cuMemcpyBatchAsync_ptsz, copy_batch, to, from, sizes, count, how, indices, how_many, failed, stream)
CUSLICE_SPLIT_FORM(cuMemcpyBatchAsync_v2, copy_batch, to, from, sizes, count, how, indices, how_many, stream)
CUSLICE_SPLIT_FORM(cuMemcpyBatchAsync_v2_ptsz, copy_batch, to, from, sizes, count, how, indices, how_many, stream)
CUSLICE_SPLIT_FORM(cuMemcpy3DBatchAsync, box_batch, count, boxes, failed, flags, stream)
CUSLICE_SPLIT_FORM(cuMemcpy3DBatchAsync_ptsz, box_batch, count, boxes, failed, flags, stream)
CUSLICE_SPLIT_FORM(cuMemcpy3DBatchAsync_v2, box_batch, count, boxes, flags, stream)
CUSLICE_SPLIT_FORM(cuMemcpy3DBatchAsync_v2_ptsz, box_batch, count, boxes, flags, stream)

}  // namespace split_driver

}  // namespace cuslice
