// SPDX-License-Identifier: Apache-2.0
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

// Between parts of one GPU, as of the fastest of links.
CUresult attribute_within_gpu(int* value, CUdevice_P2PAttribute attribute) {
    switch (attribute) {
        case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
        case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
        case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
            *value = 1;
            return CUDA_SUCCESS;
        case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
        case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED:
            *value = 0;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

// The current context and a named one, both as the program and as the driver knows them.
struct Ends {
    explicit Ends(CUcontext handle) : peer(virtual_contexts().resolve(handle)), here(CurrentVirtual::get()) {}

    // False where the driver has the only say.
    bool are_virtual() const { return here.real && here.context && peer.context; }
    bool are_one_for_driver() const { return here.real == peer.real; }

    VirtualContexts::Resolved peer, here;
};

CUresult check_ends(const Ends& ends, unsigned flags) {
    if (!ends.peer.real)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    const VirtualContext &peer = *ends.peer.context, &here = *ends.here.context;
    if (&peer == &here)
        return CUDA_ERROR_INVALID_CONTEXT;
    return peer.device == here.device ? CUDA_ERROR_PEER_ACCESS_UNSUPPORTED : CUDA_SUCCESS;
}

}  // namespace

namespace split_driver {

CUSLICE_SPLIT(cuDeviceCanAccessPeer, can, device, peer) {
    if (can && one_gpu(device, peer)) {
        *can = 1;
        return CUDA_SUCCESS;
    }
    to_physical(device, peer);
    return CUSLICE_PHYSICAL(cuDeviceCanAccessPeer)(can, device, peer);
}

CUSLICE_SPLIT(cuDeviceGetP2PAttribute, value, attribute, from, to) {
    if (value && one_gpu(from, to))
        return attribute_within_gpu(value, attribute);
    to_physical(from, to);
    return CUSLICE_PHYSICAL(cuDeviceGetP2PAttribute)(value, attribute, from, to);
}

CUSLICE_SPLIT(cuDeviceGetP2PAtomicCapabilities, capabilities, operations, count, from, to) {
    const bool one = one_gpu(from, to);
    to_physical(from, to);
    // Within one GPU it can do what it can in its own memory.
    if (one)
        return CUSLICE_PHYSICAL(cuDeviceGetHostAtomicCapabilities)(capabilities, operations, count, from);
    return CUSLICE_PHYSICAL(cuDeviceGetP2PAtomicCapabilities)(capabilities, operations, count, from, to);
}

CUSLICE_SPLIT(cuCtxEnablePeerAccess, handle, flags) {
    const Ends ends(handle);
    CUcontext const real = ends.peer.real;
    if (!ends.are_virtual())
        return CUSLICE_PHYSICAL(cuCtxEnablePeerAccess)(real, flags);
    const CUresult wrong = check_ends(ends, flags);
    if (wrong != CUDA_SUCCESS)
        return wrong;
    const PeerAccess::Pair pair{ends.here.context->number, ends.peer.context->number, ends.here.real, real};
    bool first = false;
    if (!the_peer_access.allow(pair, &first))
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    if (ends.are_one_for_driver() || !first)
        return CUDA_SUCCESS;
    const CUresult result = CUSLICE_PHYSICAL(cuCtxEnablePeerAccess)(real, flags);
    // A context that has ended since, of the same GPU, was the first to be told of.
    const bool enabled = result == CUDA_SUCCESS || result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    if (enabled)
        return CUDA_SUCCESS;
    bool last = false;
    the_peer_access.forbid(pair.from, pair.to, &last);
    return result;
}

CUSLICE_SPLIT(cuCtxDisablePeerAccess, handle) {
    const Ends ends(handle);
    CUcontext const real = ends.peer.real;
    if (!ends.are_virtual())
        return CUSLICE_PHYSICAL(cuCtxDisablePeerAccess)(real);
    if (!real)
        return CUDA_ERROR_INVALID_CONTEXT;
    bool last = false;
    if (!the_peer_access.forbid(ends.here.context->number, ends.peer.context->number, &last))
        return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    if (ends.are_one_for_driver() || !last)
        return CUDA_SUCCESS;
    const CUresult result = CUSLICE_PHYSICAL(cuCtxDisablePeerAccess)(real);
    return result == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED ? CUDA_SUCCESS : result;
}

}  // namespace split_driver

}  // namespace cuslice
