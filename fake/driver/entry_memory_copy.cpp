// Copies of one range of bytes: every direction, older and newer forms, legacy and per-thread default stream.

#include "fake/driver/api_prologue.h"
#include "fake/driver/transfer.h"

using namespace cuslice::fake;

namespace {

constexpr DefaultStream legacy = DefaultStream::Legacy, per_thread = DefaultStream::PerThread;

/// A copy between contexts: both must live, whichever is current.
CUresult copy_peer(Address to, CUcontext to_context, Address from, CUcontext from_context, std::size_t bytes,
                   const Order& order) {
    const Context *to_owner = live_context(to_context), *from_owner = live_context(from_context);
    if (to_owner == nullptr || from_owner == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    return copy_linear(device_end(to, to_owner->gpu->ordinal), device_end(from, from_owner->gpu->ordinal), bytes,
                       order);
}

}  // namespace

CUresult CUDAAPI cuMemcpyHtoD(CUdeviceptr_v1 to, const void* from, unsigned int bytes) {
    CUSLICE_ENTER(cuMemcpyHtoD)
    return copy_linear(device_end(to), host_end(from), bytes, synchronous(legacy));
}

CUresult CUDAAPI cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
    CUSLICE_ENTER(cuMemcpyHtoD_v2)
    return copy_linear(device_end(to), host_end(from), bytes, synchronous(legacy));
}

CUresult CUDAAPI cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void* from, size_t bytes) {
    CUSLICE_ENTER(cuMemcpyHtoD_v2_ptds)
    return copy_linear(device_end(to), host_end(from), bytes, synchronous(per_thread));
}

CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr_v1 to, const void* from, unsigned int bytes, CUstream stream) {
    CUSLICE_ENTER(cuMemcpyHtoDAsync)
    return copy_linear(device_end(to), host_end(from), bytes, in_stream(stream, legacy));
}

CUresult CUDAAPI cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
    CUSLICE_ENTER(cuMemcpyHtoDAsync_v2)
    return copy_linear(device_end(to), host_end(from), bytes, in_stream(stream, legacy));
}

CUresult CUDAAPI cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
    CUSLICE_ENTER(cuMemcpyHtoDAsync_v2_ptsz)
    return copy_linear(device_end(to), host_end(from), bytes, in_stream(stream, per_thread));
}

CUresult CUDAAPI cuMemcpyDtoH(void* to, CUdeviceptr_v1 from, unsigned int bytes) {
    CUSLICE_ENTER(cuMemcpyDtoH)
    return copy_linear(host_end(to), device_end(from), bytes, synchronous(legacy));
}

CUresult CUDAAPI cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
    CUSLICE_ENTER(cuMemcpyDtoH_v2)
    return copy_linear(host_end(to), device_end(from), bytes, synchronous(legacy));
}

CUresult CUDAAPI cuMemcpyDtoH_v2_ptds(void* to, CUdeviceptr from, size_t bytes) {
    CUSLICE_ENTER(cuMemcpyDtoH_v2_ptds)
    return copy_linear(host_end(to), device_end(from), bytes, synchronous(per_thread));
}

CUresult CUDAAPI cuMemcpyDtoHAsync(void* to, CUdeviceptr_v1 from, unsigned int bytes, CUstream stream) {
    CUSLICE_ENTER(cuMemcpyDtoHAsync)
    return copy_linear(host_end(to), device_end(from), bytes, in_stream(stream, legacy));
}

CUresult CUDAAPI cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
    CUSLICE_ENTER(cuMemcpyDtoHAsync_v2)
    return copy_linear(host_end(to), device_end(from), bytes, in_stream(stream, legacy));
}

CUresult CUDAAPI cuMemcpyDtoHAsync_v2_ptsz(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
    CUSLICE_ENTER(cuMemcpyDtoHAsync_v2_ptsz)
    return copy_linear(host_end(to), device_end(from), bytes, in_stream(stream, per_thread));
}

CUresult CUDAAPI cuMemcpyDtoD(CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned int bytes) {
    CUSLICE_ENTER(cuMemcpyDtoD)
    return copy_linear(device_end(to), device_end(from), bytes, synchronous(legacy));
}

CUresult CUDAAPI cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    CUSLICE_ENTER(cuMemcpyDtoD_v2)
    return copy_linear(device_end(to), device_end(from), bytes, synchronous(legacy));
}

CUresult CUDAAPI cuMemcpyDtoD_v2_ptds(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    CUSLICE_ENTER(cuMemcpyDtoD_v2_ptds)
    return copy_linear(device_end(to), device_end(from), bytes, synchronous(per_thread));
}

CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned int bytes, CUstream stream) {
    CUSLICE_ENTER(cuMemcpyDtoDAsync)
    return copy_linear(device_end(to), device_end(from), bytes, in_stream(stream, legacy));
}

CUresult CUDAAPI cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    CUSLICE_ENTER(cuMemcpyDtoDAsync_v2)
    return copy_linear(device_end(to), device_end(from), bytes, in_stream(stream, legacy));
}

CUresult CUDAAPI cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    CUSLICE_ENTER(cuMemcpyDtoDAsync_v2_ptsz)
    return copy_linear(device_end(to), device_end(from), bytes, in_stream(stream, per_thread));
}

CUresult CUDAAPI cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    CUSLICE_ENTER(cuMemcpy)
    return copy_linear(any_end(to), any_end(from), bytes, synchronous(legacy));
}

CUresult CUDAAPI cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    CUSLICE_ENTER(cuMemcpy_ptds)
    return copy_linear(any_end(to), any_end(from), bytes, synchronous(per_thread));
}

CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    CUSLICE_ENTER(cuMemcpyAsync)
    return copy_linear(any_end(to), any_end(from), bytes, in_stream(stream, legacy));
}

CUresult CUDAAPI cuMemcpyAsync_ptsz(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    CUSLICE_ENTER(cuMemcpyAsync_ptsz)
    return copy_linear(any_end(to), any_end(from), bytes, in_stream(stream, per_thread));
}

CUresult CUDAAPI cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                              size_t bytes) {
    CUSLICE_ENTER(cuMemcpyPeer)
    return copy_peer(to, to_context, from, from_context, bytes, synchronous(legacy));
}

CUresult CUDAAPI cuMemcpyPeer_ptds(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                   size_t bytes) {
    CUSLICE_ENTER(cuMemcpyPeer_ptds)
    return copy_peer(to, to_context, from, from_context, bytes, synchronous(per_thread));
}

CUresult CUDAAPI cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                   size_t bytes, CUstream stream) {
    CUSLICE_ENTER(cuMemcpyPeerAsync)
    return copy_peer(to, to_context, from, from_context, bytes, in_stream(stream, legacy));
}

CUresult CUDAAPI cuMemcpyPeerAsync_ptsz(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                        size_t bytes, CUstream stream) {
    CUSLICE_ENTER(cuMemcpyPeerAsync_ptsz)
    return copy_peer(to, to_context, from, from_context, bytes, in_stream(stream, per_thread));
}
