// GPUs and each other. Parts of one GPU reach each other's memory, whatever is allowed: they have one context. What is
// allowed is kept all the same, as programs ask and are told when they do it twice.
#include "virtual_gpu/split/current_context.h"
#include "virtual_gpu/split/functions.h"
#include "virtual_gpu/split/peer_access.h"
#include "virtual_gpu/split/translate.h"

namespace cuslice {

namespace {

// Two different GPUs for the program that are one for the driver.
bool one_gpu(CUdevice a, CUdevice b) { return a != b && split().siblings(a, b); }

void to_physical(CUdevice& a, CUdevice& b) {
    cuslice::to_physical(a);
    cuslice::to_physical(b);
}

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
template <typename Within, typename Between>
CUresult copy(CUcontext to, CUcontext from, Within within, Between between) {
    if (!to_real(to) || !to_real(from)) return CUDA_ERROR_INVALID_CONTEXT;
    return to && to == from ? within() : between(to, from);
}

template <typename Within, typename Between>
CUresult copy_box(const CUDA_MEMCPY3D_PEER* box, Within within, Between between) {
    if (!box) return between(box);
    CUDA_MEMCPY3D_PEER real = *box;
    if (!to_real(real.dstContext) || !to_real(real.srcContext)) return CUDA_ERROR_INVALID_CONTEXT;
    if (!real.dstContext || real.dstContext != real.srcContext) return between(&real);
    const CUDA_MEMCPY3D one = within_one(real);
    return within(&one);
}

}  // namespace

namespace split_driver {

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
    if (can && one_gpu(device, peer)) return *can = 1, CUDA_SUCCESS;
    to_physical(device, peer);
    return CUSLICE_PHYSICAL(cuDeviceCanAccessPeer)(can, device, peer);
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to) {
    if (value && one_gpu(from, to)) {
        // As of the fastest of links.
        switch (attribute) {
            case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
            case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
            case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
                *value = 1;
                return CUDA_SUCCESS;
            case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
                *value = 0;
                return CUDA_SUCCESS;
            case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED:
                *value = 0;
                return CUDA_SUCCESS;
            default:
                return CUDA_ERROR_INVALID_VALUE;
        }
    }
    to_physical(from, to);
    return CUSLICE_PHYSICAL(cuDeviceGetP2PAttribute)(value, attribute, from, to);
}

CUresult cuDeviceGetP2PAtomicCapabilities(unsigned* capabilities, const CUatomicOperation* operations, unsigned count,
                                          CUdevice from, CUdevice to) {
    const bool one = one_gpu(from, to);
    to_physical(from, to);
    // Within one GPU it can do what it can in its own memory.
    if (one) return CUSLICE_PHYSICAL(cuDeviceGetHostAtomicCapabilities)(capabilities, operations, count, from);
    return CUSLICE_PHYSICAL(cuDeviceGetP2PAtomicCapabilities)(capabilities, operations, count, from, to);
}

CUresult cuCtxEnablePeerAccess(CUcontext handle, unsigned flags) {
    const VirtualContexts::Meaning peer = virtual_contexts().of(handle), here = CurrentVirtual::get();
    if (!here.real || !peer.context || !here.context) return CUSLICE_PHYSICAL(cuCtxEnablePeerAccess)(peer.real, flags);
    if (!peer.real) return CUDA_ERROR_INVALID_CONTEXT;
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    if (peer.context == here.context) return CUDA_ERROR_INVALID_CONTEXT;
    if (peer.context->device == here.context->device) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    const PeerAccess::Pair pair{here.context->number, peer.context->number, here.real, peer.real};
    bool first = false;
    if (!the_peer_access.allow(pair, &first)) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    if (here.real == peer.real || !first) return CUDA_SUCCESS;
    CUresult result = CUSLICE_PHYSICAL(cuCtxEnablePeerAccess)(peer.real, flags);
    // A context that has ended since, of the same GPU, was the first to be told of.
    if (result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) result = CUDA_SUCCESS;
    bool last = false;
    if (result != CUDA_SUCCESS) the_peer_access.forbid(pair.from, pair.to, &last);
    return result;
}

CUresult cuCtxDisablePeerAccess(CUcontext handle) {
    const VirtualContexts::Meaning peer = virtual_contexts().of(handle), here = CurrentVirtual::get();
    if (!here.real || !peer.context || !here.context) return CUSLICE_PHYSICAL(cuCtxDisablePeerAccess)(peer.real);
    if (!peer.real) return CUDA_ERROR_INVALID_CONTEXT;
    bool last = false;
    if (!the_peer_access.forbid(here.context->number, peer.context->number, &last))
        return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    if (here.real == peer.real || !last) return CUDA_SUCCESS;
    const CUresult result = CUSLICE_PHYSICAL(cuCtxDisablePeerAccess)(peer.real);
    return result == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED ? CUDA_SUCCESS : result;
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes) {
    return copy(
        to_context, from_context, [&] { return CUSLICE_PHYSICAL(cuMemcpyDtoD_v2)(to, from, bytes); },
        [&](CUcontext a, CUcontext b) { return CUSLICE_PHYSICAL(cuMemcpyPeer)(to, a, from, b, bytes); });
}

CUresult cuMemcpyPeer_ptds(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                           size_t bytes) {
    return copy(
        to_context, from_context, [&] { return CUSLICE_PHYSICAL(cuMemcpyDtoD_v2_ptds)(to, from, bytes); },
        [&](CUcontext a, CUcontext b) { return CUSLICE_PHYSICAL(cuMemcpyPeer_ptds)(to, a, from, b, bytes); });
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
                           CUstream stream) {
    return copy(
        to_context, from_context, [&] { return CUSLICE_PHYSICAL(cuMemcpyDtoDAsync_v2)(to, from, bytes, stream); },
        [&](CUcontext a, CUcontext b) { return CUSLICE_PHYSICAL(cuMemcpyPeerAsync)(to, a, from, b, bytes, stream); });
}

CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                size_t bytes, CUstream stream) {
    return copy(
        to_context, from_context, [&] { return CUSLICE_PHYSICAL(cuMemcpyDtoDAsync_v2_ptsz)(to, from, bytes, stream); },
        [&](CUcontext a, CUcontext b) {
            return CUSLICE_PHYSICAL(cuMemcpyPeerAsync_ptsz)(to, a, from, b, bytes, stream);
        });
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* box) {
    return copy_box(
        box, [](const CUDA_MEMCPY3D* one) { return CUSLICE_PHYSICAL(cuMemcpy3D_v2)(one); },
        [](const CUDA_MEMCPY3D_PEER* two) { return CUSLICE_PHYSICAL(cuMemcpy3DPeer)(two); });
}

CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER* box) {
    return copy_box(
        box, [](const CUDA_MEMCPY3D* one) { return CUSLICE_PHYSICAL(cuMemcpy3D_v2_ptds)(one); },
        [](const CUDA_MEMCPY3D_PEER* two) { return CUSLICE_PHYSICAL(cuMemcpy3DPeer_ptds)(two); });
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* box, CUstream stream) {
    return copy_box(
        box, [&](const CUDA_MEMCPY3D* one) { return CUSLICE_PHYSICAL(cuMemcpy3DAsync_v2)(one, stream); },
        [&](const CUDA_MEMCPY3D_PEER* two) { return CUSLICE_PHYSICAL(cuMemcpy3DPeerAsync)(two, stream); });
}

CUresult cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER* box, CUstream stream) {
    return copy_box(
        box, [&](const CUDA_MEMCPY3D* one) { return CUSLICE_PHYSICAL(cuMemcpy3DAsync_v2_ptsz)(one, stream); },
        [&](const CUDA_MEMCPY3D_PEER* two) { return CUSLICE_PHYSICAL(cuMemcpy3DPeerAsync_ptsz)(two, stream); });
}

}  // namespace split_driver

}  // namespace cuslice
