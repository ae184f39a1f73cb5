// Peer access: recorded and checked. Copies between devices need none; what would is device code, which isn't run.

#include "fake/driver/api_prologue.h"
#include "fake/driver/context.h"
#include "fake/driver/state.h"

using namespace cuslice::fake;

CUresult CUDAAPI cuCtxEnablePeerAccess(CUcontext peer_handle, unsigned int flags) {
    CUSLICE_ENTER(cuCtxEnablePeerAccess)
    Context* context = nullptr;
    if (const CUresult bad = current_context(context); bad != CUDA_SUCCESS) return bad;
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard hold(driver().lock);
    const Context* peer = live_context(peer_handle);
    if (peer == nullptr || peer == context) return CUDA_ERROR_INVALID_CONTEXT;
    int reachable = 0;
    cuDeviceCanAccessPeer(&reachable, context->gpu->ordinal, peer->gpu->ordinal);
    if (reachable == 0) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    if (!context->peers.insert(peer->handle).second) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxDisablePeerAccess(CUcontext peer_handle) {
    CUSLICE_ENTER(cuCtxDisablePeerAccess)
    Context* context = nullptr;
    if (const CUresult bad = current_context(context); bad != CUDA_SUCCESS) return bad;
    const std::lock_guard hold(driver().lock);
    const Context* peer = live_context(peer_handle);
    if (peer == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    return context->peers.erase(peer->handle) == 0 ? CUDA_ERROR_PEER_ACCESS_NOT_ENABLED : CUDA_SUCCESS;
}
