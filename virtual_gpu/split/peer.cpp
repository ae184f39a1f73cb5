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

}  // namespace

namespace split_driver {

CUSLICE_SPLIT(cuDeviceCanAccessPeer, can, device, peer) {
    if (can && one_gpu(device, peer)) return *can = 1, CUDA_SUCCESS;
    to_physical(device, peer);
    return CUSLICE_PHYSICAL(cuDeviceCanAccessPeer)(can, device, peer);
}

CUSLICE_SPLIT(cuDeviceGetP2PAttribute, value, attribute, from, to) {
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

CUSLICE_SPLIT(cuDeviceGetP2PAtomicCapabilities, capabilities, operations, count, from, to) {
    const bool one = one_gpu(from, to);
    to_physical(from, to);
    // Within one GPU it can do what it can in its own memory.
    if (one) return CUSLICE_PHYSICAL(cuDeviceGetHostAtomicCapabilities)(capabilities, operations, count, from);
    return CUSLICE_PHYSICAL(cuDeviceGetP2PAtomicCapabilities)(capabilities, operations, count, from, to);
}

CUSLICE_SPLIT(cuCtxEnablePeerAccess, handle, flags) {
    const VirtualContexts::Resolved peer = virtual_contexts().resolve(handle), here = CurrentVirtual::get();
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

CUSLICE_SPLIT(cuCtxDisablePeerAccess, handle) {
    const VirtualContexts::Resolved peer = virtual_contexts().resolve(handle), here = CurrentVirtual::get();
    if (!here.real || !peer.context || !here.context) return CUSLICE_PHYSICAL(cuCtxDisablePeerAccess)(peer.real);
    if (!peer.real) return CUDA_ERROR_INVALID_CONTEXT;
    bool last = false;
    if (!the_peer_access.forbid(here.context->number, peer.context->number, &last))
        return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    if (here.real == peer.real || !last) return CUDA_SUCCESS;
    const CUresult result = CUSLICE_PHYSICAL(cuCtxDisablePeerAccess)(peer.real);
    return result == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED ? CUDA_SUCCESS : result;
}

}  // namespace split_driver

}  // namespace cuslice
