// SPDX-License-Identifier: Apache-2.0
#pragma once
// GPUs and each other. Which part may reach which is kept by the driver shim.
#include "shim/runtime/devices.h"
#include "shim/runtime/runtime_shim.h"

namespace cuslice::runtime {

inline bool parts_of_one(int a, int b) {
    const SplitView* split = view();
    return split && a != b && split->siblings(a, b);
}

template <int kVersion>
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
    if (parts_of_one(device, peer))
        return as_runtime(cuDeviceCanAccessPeer(can, device, peer));
    return CUSLICE_NEXT(cudaDeviceCanAccessPeer)(can, physical(device), physical(peer));
}

template <int kVersion>
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int from, int to) {
    if (parts_of_one(from, to))
        return as_runtime(cuDeviceGetP2PAttribute(value, static_cast<CUdevice_P2PAttribute>(attribute), from, to));
    return CUSLICE_NEXT(cudaDeviceGetP2PAttribute)(value, attribute, physical(from), physical(to));
}

template <int kVersion>
cudaError_t cudaDeviceGetP2PAtomicCapabilities(unsigned* capabilities, const cudaAtomicOperation* operations,
                                               unsigned count, int from, int to) {
    if (parts_of_one(from, to))
        return CUSLICE_NEXT(cudaDeviceGetP2PAtomicCapabilities)(capabilities, operations, count, -1, -1);
    return CUSLICE_NEXT(cudaDeviceGetP2PAtomicCapabilities)(capabilities, operations, count, physical(from),
                                                            physical(to));
}

// The peer's primary context, which has to be in use, while this thread's stays current.
inline CUcontext context_of_peer(const SplitView& split, int peer) {
    const int here = split.current();
    CUcontext context = nullptr;
    if (here < 0 || split.make_current(peer) != CUDA_SUCCESS)
        return nullptr;
    cuCtxGetCurrent(&context);
    return split.make_current(here) == CUDA_SUCCESS ? context : nullptr;
}

// The runtime first: it makes the thread's context, if there is none, and knows what can't be.
template <int kVersion>
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
    const SplitView* split = view();
    int here = -1;
    if (split && cudaGetDevice<kVersion>(&here) == cudaSuccess && split->physical_of(peer) >= 0) {
        if (split->current() < 0)
            cudaSetDevice<kVersion>(here);
        if (const CUcontext context = context_of_peer(*split, peer))
            return as_runtime(cuCtxEnablePeerAccess(context, flags));
    }
    return CUSLICE_NEXT(cudaDeviceEnablePeerAccess)(physical(peer), flags);
}

template <int kVersion>
cudaError_t cudaDeviceDisablePeerAccess(int peer) {
    const SplitView* split = view();
    if (split && split->physical_of(peer) >= 0)
        if (const CUcontext context = context_of_peer(*split, peer))
            return as_runtime(cuCtxDisablePeerAccess(context));
    return CUSLICE_NEXT(cudaDeviceDisablePeerAccess)(physical(peer));
}

template <int kVersion>
cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t bytes) {
    if (parts_of_one(to_device, from_device))
        return CUSLICE_NEEDED(cudaMemcpy, cudaMemcpy)(to, from, bytes, cudaMemcpyDeviceToDevice);
    return CUSLICE_NEXT(cudaMemcpyPeer)(to, physical(to_device), from, physical(from_device), bytes);
}

template <int kVersion>
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                cudaStream_t stream) {
    if (parts_of_one(to_device, from_device))
        return CUSLICE_NEEDED(cudaMemcpyAsync, cudaMemcpyAsync)(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
    return CUSLICE_NEXT(cudaMemcpyPeerAsync)(to, physical(to_device), from, physical(from_device), bytes, stream);
}

inline cudaMemcpy3DParms within_one(const cudaMemcpy3DPeerParms& box) {
    return {box.srcArray, box.srcPos, box.srcPtr, box.dstArray, box.dstPos, box.dstPtr, box.extent, cudaMemcpyDefault};
}

template <typename Within, typename Between>
cudaError_t copy_box(const cudaMemcpy3DPeerParms* box, Within within, Between between) {
    if (!box)
        return between(box);
    if (parts_of_one(box->srcDevice, box->dstDevice)) {
        const cudaMemcpy3DParms one = within_one(*box);
        return within(&one);
    }
    cudaMemcpy3DPeerParms real = *box;
    real.srcDevice = physical(box->srcDevice);
    real.dstDevice = physical(box->dstDevice);
    return between(&real);
}

template <int kVersion>
cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* box) {
    return copy_box(
        box, [](const cudaMemcpy3DParms* one) { return CUSLICE_NEEDED(cudaMemcpy3D, cudaMemcpy3D)(one); },
        [](const cudaMemcpy3DPeerParms* two) { return CUSLICE_NEXT(cudaMemcpy3DPeer)(two); });
}

template <int kVersion>
cudaError_t cudaMemcpy3DPeer_ptds(const cudaMemcpy3DPeerParms* box) {
    return copy_box(
        box, [](const cudaMemcpy3DParms* one) { return CUSLICE_NEEDED(cudaMemcpy3D_ptds, cudaMemcpy3D)(one); },
        [](const cudaMemcpy3DPeerParms* two) { return CUSLICE_NEXT(cudaMemcpy3DPeer_ptds)(two); });
}

template <int kVersion>
cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* box, cudaStream_t stream) {
    return copy_box(
        box,
        [&](const cudaMemcpy3DParms* one) { return CUSLICE_NEEDED(cudaMemcpy3DAsync, cudaMemcpy3DAsync)(one, stream); },
        [&](const cudaMemcpy3DPeerParms* two) { return CUSLICE_NEXT(cudaMemcpy3DPeerAsync)(two, stream); });
}

template <int kVersion>
cudaError_t cudaMemcpy3DPeerAsync_ptsz(const cudaMemcpy3DPeerParms* box, cudaStream_t stream) {
    return copy_box(
        box,
        [&](const cudaMemcpy3DParms* one) {
            return CUSLICE_NEEDED(cudaMemcpy3DAsync_ptsz, cudaMemcpy3DAsync)(one, stream);
        },
        [&](const cudaMemcpy3DPeerParms* two) { return CUSLICE_NEXT(cudaMemcpy3DPeerAsync_ptsz)(two, stream); });
}

}  // namespace cuslice::runtime
