// Copies of rows and boxes, and of bytes in arrays: older and newer forms, legacy and per-thread default stream.

#include "fake/driver/api_prologue.h"
#include "fake/driver/box.h"

using namespace cuslice::fake;

namespace {

constexpr DefaultStream legacy = DefaultStream::Legacy, per_thread = DefaultStream::PerThread;

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
CUresult copy_2d(const Copy* copy, const Order& order) {
    if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return copy_box({source(*copy), target(*copy), copy->WidthInBytes, copy->Height, 1}, order);
}

template <typename Copy>
CUresult describe_3d(const Copy& copy, int from_gpu, int to_gpu, Box& box) {
    if (copy.srcLOD != 0 || copy.dstLOD != 0) return CUDA_ERROR_INVALID_VALUE;
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

template <typename Copy>
CUresult copy_3d(const Copy* copy, const Order& order, int from_gpu = accessing_gpu(), int to_gpu = accessing_gpu()) {
    Box box;
    if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult bad = describe_3d(*copy, from_gpu, to_gpu, box); bad != CUDA_SUCCESS) return bad;
    return copy_box(box, order);
}

CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER* copy, const Order& order) {
    if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Context *from = live_context(copy->srcContext), *to = live_context(copy->dstContext);
    if (from == nullptr || to == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    return copy_3d(copy, order, from->gpu->ordinal, to->gpu->ordinal);
}

/// One end of a copy of bytes: an array from an offset on, or memory.
struct Bytes {
    CUarray array = nullptr;
    std::size_t offset = 0;
    End end{};
};
Bytes in_array(CUarray array, std::size_t offset) { return {array, offset, {}}; }
Bytes in_memory(const End& end) { return {nullptr, 0, end}; }

CUresult resolve(const Bytes& bytes, bool array, std::size_t size, Access access, Pieces& pieces) {
    return array ? resolve_array_bytes(bytes.array, bytes.offset, size, access, pieces)
                 : resolve_end(bytes.end, size, access, pieces);
}

template <bool to_array, bool from_array>
CUresult copy_bytes(const Bytes& to, const Bytes& from, std::size_t size, const Order& order) {
    Context* context = nullptr;
    if (const CUresult bad = current_context(context); bad != CUDA_SUCCESS) return bad;
    if (size == 0) return CUDA_SUCCESS;
    Pieces source_pieces, target_pieces;
    if (const CUresult bad = resolve(from, from_array, size, Access::Read, source_pieces); bad != CUDA_SUCCESS)
        return bad;
    if (const CUresult bad = resolve(to, to_array, size, Access::Write, target_pieces); bad != CUDA_SUCCESS) return bad;
    return run_transfer(CU_GRAPH_NODE_TYPE_MEMCPY, copy_task(target_pieces, source_pieces),
                        {order.stream, order.form, returns_when_done(order, target_pieces, source_pieces)});
}

}  // namespace

namespace cuslice::fake {

CUresult box_of(const CUDA_MEMCPY3D& copy, int gpu, Box& box) { return describe_3d(copy, gpu, gpu, box); }

}  // namespace cuslice::fake

CUresult CUDAAPI cuMemcpy2D(const CUDA_MEMCPY2D_v1* copy) {
    CUSLICE_ENTER(cuMemcpy2D)
    return copy_2d(copy, synchronous(legacy));
}

CUresult CUDAAPI cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) {
    CUSLICE_ENTER(cuMemcpy2D_v2)
    return copy_2d(copy, synchronous(legacy));
}

CUresult CUDAAPI cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D* copy) {
    CUSLICE_ENTER(cuMemcpy2D_v2_ptds)
    return copy_2d(copy, synchronous(per_thread));
}

CUresult CUDAAPI cuMemcpy2DAsync(const CUDA_MEMCPY2D_v1* copy, CUstream stream) {
    CUSLICE_ENTER(cuMemcpy2DAsync)
    return copy_2d(copy, in_stream(stream, legacy));
}

CUresult CUDAAPI cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
    CUSLICE_ENTER(cuMemcpy2DAsync_v2)
    return copy_2d(copy, in_stream(stream, legacy));
}

CUresult CUDAAPI cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D* copy, CUstream stream) {
    CUSLICE_ENTER(cuMemcpy2DAsync_v2_ptsz)
    return copy_2d(copy, in_stream(stream, per_thread));
}

CUresult CUDAAPI cuMemcpy2DUnaligned(const CUDA_MEMCPY2D_v1* copy) {
    CUSLICE_ENTER(cuMemcpy2DUnaligned)
    return copy_2d(copy, synchronous(legacy));
}

CUresult CUDAAPI cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) {
    CUSLICE_ENTER(cuMemcpy2DUnaligned_v2)
    return copy_2d(copy, synchronous(legacy));
}

CUresult CUDAAPI cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D* copy) {
    CUSLICE_ENTER(cuMemcpy2DUnaligned_v2_ptds)
    return copy_2d(copy, synchronous(per_thread));
}

CUresult CUDAAPI cuMemcpy3D(const CUDA_MEMCPY3D_v1* copy) {
    CUSLICE_ENTER(cuMemcpy3D)
    return copy_3d(copy, synchronous(legacy));
}

CUresult CUDAAPI cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) {
    CUSLICE_ENTER(cuMemcpy3D_v2)
    return copy_3d(copy, synchronous(legacy));
}

CUresult CUDAAPI cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D* copy) {
    CUSLICE_ENTER(cuMemcpy3D_v2_ptds)
    return copy_3d(copy, synchronous(per_thread));
}

CUresult CUDAAPI cuMemcpy3DAsync(const CUDA_MEMCPY3D_v1* copy, CUstream stream) {
    CUSLICE_ENTER(cuMemcpy3DAsync)
    return copy_3d(copy, in_stream(stream, legacy));
}

CUresult CUDAAPI cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
    CUSLICE_ENTER(cuMemcpy3DAsync_v2)
    return copy_3d(copy, in_stream(stream, legacy));
}

CUresult CUDAAPI cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D* copy, CUstream stream) {
    CUSLICE_ENTER(cuMemcpy3DAsync_v2_ptsz)
    return copy_3d(copy, in_stream(stream, per_thread));
}

CUresult CUDAAPI cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) {
    CUSLICE_ENTER(cuMemcpy3DPeer)
    return copy_3d_peer(copy, synchronous(legacy));
}

CUresult CUDAAPI cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER* copy) {
    CUSLICE_ENTER(cuMemcpy3DPeer_ptds)
    return copy_3d_peer(copy, synchronous(per_thread));
}

CUresult CUDAAPI cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
    CUSLICE_ENTER(cuMemcpy3DPeerAsync)
    return copy_3d_peer(copy, in_stream(stream, legacy));
}

CUresult CUDAAPI cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
    CUSLICE_ENTER(cuMemcpy3DPeerAsync_ptsz)
    return copy_3d_peer(copy, in_stream(stream, per_thread));
}

CUresult CUDAAPI cuMemcpyHtoA(CUarray to, unsigned int offset, const void* from, unsigned int bytes) {
    CUSLICE_ENTER(cuMemcpyHtoA)
    return copy_bytes<true, false>(in_array(to, offset), in_memory(host_end(from)), bytes, synchronous(legacy));
}

CUresult CUDAAPI cuMemcpyHtoA_v2(CUarray to, size_t offset, const void* from, size_t bytes) {
    CUSLICE_ENTER(cuMemcpyHtoA_v2)
    return copy_bytes<true, false>(in_array(to, offset), in_memory(host_end(from)), bytes, synchronous(legacy));
}

CUresult CUDAAPI cuMemcpyHtoA_v2_ptds(CUarray to, size_t offset, const void* from, size_t bytes) {
    CUSLICE_ENTER(cuMemcpyHtoA_v2_ptds)
    return copy_bytes<true, false>(in_array(to, offset), in_memory(host_end(from)), bytes, synchronous(per_thread));
}

CUresult CUDAAPI cuMemcpyHtoAAsync(CUarray to, unsigned int offset, const void* from, unsigned int bytes,
                                   CUstream stream) {
    CUSLICE_ENTER(cuMemcpyHtoAAsync)
    return copy_bytes<true, false>(in_array(to, offset), in_memory(host_end(from)), bytes, in_stream(stream, legacy));
}

CUresult CUDAAPI cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void* from, size_t bytes, CUstream stream) {
    CUSLICE_ENTER(cuMemcpyHtoAAsync_v2)
    return copy_bytes<true, false>(in_array(to, offset), in_memory(host_end(from)), bytes, in_stream(stream, legacy));
}

CUresult CUDAAPI cuMemcpyHtoAAsync_v2_ptsz(CUarray to, size_t offset, const void* from, size_t bytes, CUstream stream) {
    CUSLICE_ENTER(cuMemcpyHtoAAsync_v2_ptsz)
    return copy_bytes<true, false>(in_array(to, offset), in_memory(host_end(from)), bytes,
                                   in_stream(stream, per_thread));
}

CUresult CUDAAPI cuMemcpyAtoH(void* to, CUarray from, unsigned int offset, unsigned int bytes) {
    CUSLICE_ENTER(cuMemcpyAtoH)
    return copy_bytes<false, true>(in_memory(host_end(to)), in_array(from, offset), bytes, synchronous(legacy));
}

CUresult CUDAAPI cuMemcpyAtoH_v2(void* to, CUarray from, size_t offset, size_t bytes) {
    CUSLICE_ENTER(cuMemcpyAtoH_v2)
    return copy_bytes<false, true>(in_memory(host_end(to)), in_array(from, offset), bytes, synchronous(legacy));
}

CUresult CUDAAPI cuMemcpyAtoH_v2_ptds(void* to, CUarray from, size_t offset, size_t bytes) {
    CUSLICE_ENTER(cuMemcpyAtoH_v2_ptds)
    return copy_bytes<false, true>(in_memory(host_end(to)), in_array(from, offset), bytes, synchronous(per_thread));
}

CUresult CUDAAPI cuMemcpyAtoHAsync(void* to, CUarray from, unsigned int offset, unsigned int bytes, CUstream stream) {
    CUSLICE_ENTER(cuMemcpyAtoHAsync)
    return copy_bytes<false, true>(in_memory(host_end(to)), in_array(from, offset), bytes, in_stream(stream, legacy));
}

CUresult CUDAAPI cuMemcpyAtoHAsync_v2(void* to, CUarray from, size_t offset, size_t bytes, CUstream stream) {
    CUSLICE_ENTER(cuMemcpyAtoHAsync_v2)
    return copy_bytes<false, true>(in_memory(host_end(to)), in_array(from, offset), bytes, in_stream(stream, legacy));
}

CUresult CUDAAPI cuMemcpyAtoHAsync_v2_ptsz(void* to, CUarray from, size_t offset, size_t bytes, CUstream stream) {
    CUSLICE_ENTER(cuMemcpyAtoHAsync_v2_ptsz)
    return copy_bytes<false, true>(in_memory(host_end(to)), in_array(from, offset), bytes,
                                   in_stream(stream, per_thread));
}

CUresult CUDAAPI cuMemcpyDtoA(CUarray to, unsigned int offset, CUdeviceptr_v1 from, unsigned int bytes) {
    CUSLICE_ENTER(cuMemcpyDtoA)
    return copy_bytes<true, false>(in_array(to, offset), in_memory(device_end(from)), bytes, synchronous(legacy));
}

CUresult CUDAAPI cuMemcpyDtoA_v2(CUarray to, size_t offset, CUdeviceptr from, size_t bytes) {
    CUSLICE_ENTER(cuMemcpyDtoA_v2)
    return copy_bytes<true, false>(in_array(to, offset), in_memory(device_end(from)), bytes, synchronous(legacy));
}

CUresult CUDAAPI cuMemcpyDtoA_v2_ptds(CUarray to, size_t offset, CUdeviceptr from, size_t bytes) {
    CUSLICE_ENTER(cuMemcpyDtoA_v2_ptds)
    return copy_bytes<true, false>(in_array(to, offset), in_memory(device_end(from)), bytes, synchronous(per_thread));
}

CUresult CUDAAPI cuMemcpyAtoD(CUdeviceptr_v1 to, CUarray from, unsigned int offset, unsigned int bytes) {
    CUSLICE_ENTER(cuMemcpyAtoD)
    return copy_bytes<false, true>(in_memory(device_end(to)), in_array(from, offset), bytes, synchronous(legacy));
}

CUresult CUDAAPI cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t offset, size_t bytes) {
    CUSLICE_ENTER(cuMemcpyAtoD_v2)
    return copy_bytes<false, true>(in_memory(device_end(to)), in_array(from, offset), bytes, synchronous(legacy));
}

CUresult CUDAAPI cuMemcpyAtoD_v2_ptds(CUdeviceptr to, CUarray from, size_t offset, size_t bytes) {
    CUSLICE_ENTER(cuMemcpyAtoD_v2_ptds)
    return copy_bytes<false, true>(in_memory(device_end(to)), in_array(from, offset), bytes, synchronous(per_thread));
}

CUresult CUDAAPI cuMemcpyAtoA(CUarray to, unsigned int to_offset, CUarray from, unsigned int from_offset,
                              unsigned int bytes) {
    CUSLICE_ENTER(cuMemcpyAtoA)
    return copy_bytes<true, true>(in_array(to, to_offset), in_array(from, from_offset), bytes, synchronous(legacy));
}

CUresult CUDAAPI cuMemcpyAtoA_v2(CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes) {
    CUSLICE_ENTER(cuMemcpyAtoA_v2)
    return copy_bytes<true, true>(in_array(to, to_offset), in_array(from, from_offset), bytes, synchronous(legacy));
}

CUresult CUDAAPI cuMemcpyAtoA_v2_ptds(CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes) {
    CUSLICE_ENTER(cuMemcpyAtoA_v2_ptds)
    return copy_bytes<true, true>(in_array(to, to_offset), in_array(from, from_offset), bytes, synchronous(per_thread));
}
