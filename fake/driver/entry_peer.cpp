// SPDX-License-Identifier: Apache-2.0
// Peer access: recorded and checked. Copies between devices need none; what would is device code, which isn't run.

#include "fake/driver/api_prologue.h"
#include "fake/driver/context.h"
#include "fake/driver/state.h"

using namespace cuslice::fake;

namespace {

/// Peers reach each other over NVLink where both have it, else over PCI Express from Pascal on.
bool peers(const GpuSpec& a, const GpuSpec& b) {
    return a.uuid != b.uuid && a.major >= 6 && b.major >= 6 && a.major == b.major;
}

}  // namespace

CUSLICE_ENTRY(cuDeviceCanAccessPeer, can, device, peer) {
    Gpu *gpu = nullptr, *other = nullptr;
    CUSLICE_TRY(device_and(can, device, gpu));
    CUSLICE_TRY(device_and(can, peer, other));
    *can = peers(gpu->spec, other->spec);
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuDeviceGetP2PAttribute, value, attribute, source, target) {
    Gpu *gpu = nullptr, *other = nullptr;
    CUSLICE_TRY(device_and(value, source, gpu));
    CUSLICE_TRY(device_and(value, target, other));
    if (gpu == other)
        return CUDA_ERROR_INVALID_DEVICE;
    const bool reachable = peers(gpu->spec, other->spec);
    const bool linked = reachable && gpu->spec.nvlink && other->spec.nvlink;
    switch (static_cast<int>(attribute)) {
        case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
            *value = linked ? 0 : 1;
            return CUDA_SUCCESS;
        case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
        case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
            *value = reachable;
            return CUDA_SUCCESS;
        case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
            *value = linked;
            return CUDA_SUCCESS;
        case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED:
            *value = 0;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

CUSLICE_ENTRY(cuCtxEnablePeerAccess, peer_handle, flags) {
    CUSLICE_FIND_CURRENT(context);
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    const DriverLock hold;
    const Context* peer = live_context(peer_handle);
    if (peer == nullptr || peer == context)
        return CUDA_ERROR_INVALID_CONTEXT;
    int reachable = 0;
    cuDeviceCanAccessPeer(&reachable, context->gpu->ordinal, peer->gpu->ordinal);
    if (reachable == 0)
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    if (!context->peers.insert(peer->handle).second)
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuCtxDisablePeerAccess, peer_handle) {
    CUSLICE_FIND_CURRENT(context);
    const DriverLock hold;
    const Context* peer = live_context(peer_handle);
    if (peer == nullptr)
        return CUDA_ERROR_INVALID_CONTEXT;
    return context->peers.erase(peer->handle) == 0 ? CUDA_ERROR_PEER_ACCESS_NOT_ENABLED : CUDA_SUCCESS;
}
