// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/split/context_end.h"

#include "virtual_gpu/split/handle_registry.h"
#include "virtual_gpu/split/physical.h"

namespace cuslice {

namespace {

struct Left {
    CUcontext real;
    CUdevice physical;
};
constinit thread_local Left left = {nullptr, -1};
constinit Mutex lifetimes{LockRank::lifetimes};

template <typename Handle, typename Destroy>
void destroy_all(const VirtualContext& context, HandleKind kind, Destroy destroy) {
    while (void* handle = handle_registry().take_of(context.number, kind))
        destroy(static_cast<Handle>(handle));
}

// The driver's own free waits for all work on the GPU, and ends no capture where the thread's mode is relaxed. False:
// this driver has no modes, or no room for the block.
bool wait_by_free() {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (CUSLICE_PHYSICAL(cuThreadExchangeStreamCaptureMode)(&mode) != CUDA_SUCCESS)
        return false;
    CUdeviceptr block = 0;
    bool waited = CUSLICE_PHYSICAL(cuMemAlloc_v2)(&block, 1) == CUDA_SUCCESS;
    if (waited)
        waited = CUSLICE_PHYSICAL(cuMemFree_v2)(block) == CUDA_SUCCESS;
    CUSLICE_PHYSICAL(cuThreadExchangeStreamCaptureMode)(&mode);
    return waited;
}

// Streams of other partitions may be captured: to wait for the context that they share would end that.
void wait_for_work() {
    if (!wait_by_free())
        CUSLICE_PHYSICAL(cuCtxSynchronize)();
}

}  // namespace

Mutex& lifetimes_mutex() { return lifetimes; }

void end_what_was_made(const VirtualContext& context) {
    CUcontext popped = nullptr;
    if (CUSLICE_PHYSICAL(cuCtxPushCurrent_v2)(context.real) != CUDA_SUCCESS)
        return;
    wait_for_work();
    destroy_all<CUstream>(context, HandleKind::stream, [](CUstream it) { CUSLICE_PHYSICAL(cuStreamDestroy_v2)(it); });
    destroy_all<CUmodule>(context, HandleKind::module, [](CUmodule it) { CUSLICE_PHYSICAL(cuModuleUnload)(it); });
    destroy_all<CUarray>(context, HandleKind::array, [](CUarray it) { CUSLICE_PHYSICAL(cuArrayDestroy)(it); });
    destroy_all<CUmipmappedArray>(context, HandleKind::mipmap, [](CUmipmappedArray it) {
        CUSLICE_PHYSICAL(cuMipmappedArrayDestroy)(it);
    });
    CUSLICE_PHYSICAL(cuCtxPopCurrent_v2)(&popped);
}

void leave_memory(const VirtualContext& context, CUdevice physical) {
    if (left.real)
        CUSLICE_PHYSICAL(cuDevicePrimaryCtxRelease_v2)(left.physical);  // nobody asked
    left = {context.real, physical};
}

LeftMemory::LeftMemory() : physical_(left.physical) {
    if (left.real)
        pushed_ = CUSLICE_PHYSICAL(cuCtxPushCurrent_v2)(left.real) == CUDA_SUCCESS;
    left = {nullptr, -1};
}

LeftMemory::~LeftMemory() {
    CUcontext popped = nullptr;
    if (pushed_)
        CUSLICE_PHYSICAL(cuCtxPopCurrent_v2)(&popped);
    if (physical_ < 0)
        return;
    DisablingLockGuard lock(lifetimes);
    CUSLICE_PHYSICAL(cuDevicePrimaryCtxRelease_v2)(physical_);
}

}  // namespace cuslice
