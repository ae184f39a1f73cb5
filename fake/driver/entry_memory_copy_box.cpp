// SPDX-License-Identifier: Apache-2.0
// Copies of rows and boxes, and of bytes in arrays: older and newer forms, legacy and per-thread default stream.

#include "fake/driver/box.h"
#include "fake/driver/stream_pair.h"

using namespace cuslice::fake;

namespace {

/// The end that a copy reads from or writes to; every form of the structure has these members.
template <typename Copy>
BoxEnd source(const Copy& copy) {
    BoxEnd end;
    end.type = copy.srcMemoryType;
    end.address = end.type == CU_MEMORYTYPE_HOST ? reinterpret_cast<Address>(copy.srcHost) : copy.srcDevice;
    end.array = copy.srcArray;
    end.x = copy.srcXInBytes;
    end.y = copy.srcY;
    end.pitch = copy.srcPitch;
    return end;
}

template <typename Copy>
BoxEnd target(const Copy& copy) {
    BoxEnd end;
    end.type = copy.dstMemoryType;
    end.address = end.type == CU_MEMORYTYPE_HOST ? reinterpret_cast<Address>(copy.dstHost) : copy.dstDevice;
    end.array = copy.dstArray;
    end.x = copy.dstXInBytes;
    end.y = copy.dstY;
    end.pitch = copy.dstPitch;
    return end;
}

template <typename Copy>
CUresult describe_3d(const Copy& copy, int from_gpu, int to_gpu, Box& box) {
    if (copy.srcLOD != 0 || copy.dstLOD != 0)
        return CUDA_ERROR_INVALID_VALUE;
    BoxEnd from = source(copy), to = target(copy);
    from.gpu = from_gpu;
    from.z = copy.srcZ;
    from.height = copy.srcHeight;
    to.gpu = to_gpu;
    to.z = copy.dstZ;
    to.height = copy.dstHeight;
    box = {from, to, copy.WidthInBytes, copy.Height, copy.Depth};
    return CUDA_SUCCESS;
}

constexpr auto rows = [](const auto* copy, auto... stream) {
    if (copy == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    return copy_box({source(*copy), target(*copy), copy->WidthInBytes, copy->Height, 1}, order_of(stream...));
};

template <typename Copy>
CUresult copy_3d(const Copy& copy, int from_gpu, int to_gpu, const Order& order) {
    Box box;
    CUSLICE_TRY(describe_3d(copy, from_gpu, to_gpu, box));
    return copy_box(box, order);
}

constexpr auto boxes = [](const auto* copy, auto... stream) {
    if (copy == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    return copy_3d(*copy, accessing_gpu(), accessing_gpu(), order_of(stream...));
};
/// Between contexts: both must live, whichever is current.
constexpr auto boxes_between = [](const CUDA_MEMCPY3D_PEER* copy, auto... stream) {
    if (copy == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const Context *from = live_context(copy->srcContext), *to = live_context(copy->dstContext);
    if (from == nullptr || to == nullptr)
        return CUDA_ERROR_INVALID_CONTEXT;
    return copy_3d(*copy, from->gpu->ordinal, to->gpu->ordinal, order_of(stream...));
};

/// Bytes in an array, from an offset on.
struct InArray {
    CUarray array;
    size_t offset;
};
CUresult resolve(const InArray& bytes, size_t size, Access access, Extents& extents) {
    return resolve_array_bytes(bytes.array, bytes.offset, size, access, extents);
}
CUresult resolve(const End& bytes, size_t size, Access access, Extents& extents) {
    return resolve_end(bytes, size, access, extents);
}

template <typename To, typename From>
CUresult copy_bytes(const To& to, const From& from, size_t size, const Order& order) {
    CUSLICE_FIND_CURRENT(context);
    if (size == 0)
        return CUDA_SUCCESS;
    Extents source_extents, target_extents;
    CUSLICE_TRY(resolve(from, size, Access::Read, source_extents));
    CUSLICE_TRY(resolve(to, size, Access::Write, target_extents));
    return run_transfer(copy_work(copy_task(target_extents, source_extents), target_extents, source_extents),
                        {order.stream, order.form, returns_when_done(order, target_extents, source_extents)});
}

constexpr auto host_to_array = [](CUarray to, size_t offset, const void* from, size_t size, auto... stream) {
    return copy_bytes(InArray{to, offset}, host_end(from), size, order_of(stream...));
};
constexpr auto array_to_host = [](void* to, CUarray from, size_t offset, size_t size, auto... stream) {
    return copy_bytes(host_end(to), InArray{from, offset}, size, order_of(stream...));
};
constexpr auto device_to_array = [](CUarray to, size_t offset, Address from, size_t size, auto... stream) {
    return copy_bytes(InArray{to, offset}, device_end(from), size, order_of(stream...));
};
constexpr auto array_to_device = [](Address to, CUarray from, size_t offset, size_t size, auto... stream) {
    return copy_bytes(device_end(to), InArray{from, offset}, size, order_of(stream...));
};
constexpr auto array_to_array = [](CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t size,
                                   auto... stream) {
    return copy_bytes(InArray{to, to_offset}, InArray{from, from_offset}, size, order_of(stream...));
};

}  // namespace

namespace cuslice::fake {

CUresult box_of(const CUDA_MEMCPY3D& copy, int gpu, Box& box) { return describe_3d(copy, gpu, gpu, box); }

}  // namespace cuslice::fake

CUSLICE_STREAM_FORMS(cuMemcpy2D, _ptds, rows, copy)
CUSLICE_STREAM_FORMS(cuMemcpy2DAsync, _ptsz, rows, copy, stream)
CUSLICE_STREAM_FORMS(cuMemcpy2DUnaligned, _ptds, rows, copy)

CUSLICE_STREAM_FORMS(cuMemcpy3D, _ptds, boxes, copy)
CUSLICE_STREAM_FORMS(cuMemcpy3DAsync, _ptsz, boxes, copy, stream)

CUSLICE_STREAM_FORM(cuMemcpy3DPeer, boxes_between, copy)
CUSLICE_STREAM_FORM(cuMemcpy3DPeer_ptds, boxes_between, copy)
CUSLICE_STREAM_PAIR(cuMemcpy3DPeerAsync, boxes_between, copy, stream)

CUSLICE_STREAM_FORMS(cuMemcpyHtoA, _ptds, host_to_array, to, offset, from, bytes)
CUSLICE_STREAM_FORMS(cuMemcpyHtoAAsync, _ptsz, host_to_array, to, offset, from, bytes, stream)

CUSLICE_STREAM_FORMS(cuMemcpyAtoH, _ptds, array_to_host, to, from, offset, bytes)
CUSLICE_STREAM_FORMS(cuMemcpyAtoHAsync, _ptsz, array_to_host, to, from, offset, bytes, stream)

CUSLICE_STREAM_FORMS(cuMemcpyDtoA, _ptds, device_to_array, to, offset, from, bytes)

CUSLICE_STREAM_FORMS(cuMemcpyAtoD, _ptds, array_to_device, to, from, offset, bytes)

CUSLICE_STREAM_FORMS(cuMemcpyAtoA, _ptds, array_to_array, to, to_offset, from, from_offset, bytes)
