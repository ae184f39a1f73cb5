// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/split/context_lifetime.h"

#include <atomic>

#include "virtual_gpu/split/default_pools.h"
#include "virtual_gpu/split/handle_registry.h"
#include "virtual_gpu/split/physical.h"
#include "virtual_gpu/split/split.h"

namespace cuslice {

namespace {

struct Left {
    CUcontext real;
    CUdevice physical;
};
constinit thread_local Left left = {nullptr, -1};
constinit std::atomic<int> threads_that_left[VirtualParts::kMax]{};  // memory, by physical GPUs
constinit Mutex lifetimes{LockRank::lifetimes};

template <typename Handle, typename Destroy>
void destroy_all(const VirtualContext& context, HandleKind kind, Destroy destroy) {
    while (void* handle = handle_registry().take_of(context.number, kind))
        destroy(static_cast<Handle>(handle));
}

bool is_active(CUdevice physical) {
    unsigned flags = 0;
    int active = 0;
    return CUSLICE_PHYSICAL(cuDevicePrimaryCtxGetState)(physical, &flags, &active) == CUDA_SUCCESS && active;
}

// Begins it where the physical one is alive, for more than memory that was left in it, and is `real`, if that is given.
bool begin_if_active(VirtualContext& context, CUcontext real) {
    const CUdevice physical = split().device(context.device)->physical;
    CUcontext retained = nullptr;
    if (memory_is_left(physical) || !is_active(physical) ||
        CUSLICE_PHYSICAL(cuDevicePrimaryCtxRetain)(&retained, physical) != CUDA_SUCCESS)
        return false;
    if (real && retained != real) {
        give_up_real(physical);
        return false;
    }
    virtual_contexts().begin(context, retained);
    virtual_contexts().use_at_least_once(context);
    return true;
}

// The primary context of the current GPU's first partition; null if nothing is current.
VirtualContext* first_on_current_gpu() {
    CUdevice physical = CU_DEVICE_INVALID;
    if (CUSLICE_PHYSICAL(cuCtxGetDevice)(&physical) != CUDA_SUCCESS)
        return nullptr;
    const int first = split().first_of(physical);
    return first >= 0 ? &virtual_contexts().primary(first) : nullptr;
}

bool has_green_context(CUdevice physical) {
    uint64_t partitions = 0;
    for (int i = 0; i < split().count(); i++)
        if (split().device(i)->physical == physical)
            partitions |= uint64_t{1} << i;
    return handle_registry().any_of(partitions, HandleKind::green);
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

// With the lock held: what this thread has left isn't freed, or is by now.
void give_up_left(CUdevice physical) {
    give_up_real(physical);
    threads_that_left[physical]--;
}

// Streams of other partitions may be captured: to wait for the context that they share would end that.
void wait_for_work() {
    if (!wait_by_free())
        CUSLICE_PHYSICAL(cuCtxSynchronize)();
}

}  // namespace

Mutex& lifetimes_mutex() { return lifetimes; }

VirtualContext* begin_by_use(VirtualContext* known, CUcontext real) {
    VirtualContext* const context = known ? known : first_on_current_gpu();
    if (!context || !context->primary() || context->lives)
        return nullptr;
    bool begun = false;
    while_none_ends([&] {
        // Where no other partition's is alive, nothing but the runtime's use keeps the physical one so.
        const bool used =
            context->ended != VirtualContext::Ended::by_program || !virtual_contexts().has_company(*context);
        begun = used && !context->lives && begin_if_active(*context, real);
    });
    return begun ? context : nullptr;
}

void begin_if_used_unseen(CUdevice physical, const VirtualContexts::Resolved& here) {
    VirtualContext& first = virtual_contexts().primary(split().first_of(physical));
    if (first.lives)
        return;
    const bool used_here = here.real && !here.context && first.ended == VirtualContext::Ended::never;
    if (used_here && begin_if_active(first, here.real))
        return;
    if (!virtual_contexts().has_company(first) && !has_green_context(physical))
        begin_if_active(first, nullptr);
}

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
        give_up_left(left.physical);  // nobody asked
    threads_that_left[physical]++;
    left = {context.real, physical};
}

bool memory_is_left(CUdevice physical) { return threads_that_left[physical] != 0; }

bool real_lives_on(const VirtualContext& context) {
    return virtual_contexts().has_company(context) || memory_is_left(split().device(context.device)->physical);
}

CUresult give_up_real(CUdevice physical) {
    const CUresult result = CUSLICE_PHYSICAL(cuDevicePrimaryCtxRelease_v2)(physical);
    if (result == CUDA_SUCCESS)
        forget_pools_if_ended(physical);
    return result;
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
    give_up_left(physical_);
}

}  // namespace cuslice
