// SPDX-License-Identifier: Apache-2.0
#include "shim/process/ending_context.h"

#include "virtual_gpu/gpu/allocation_kind.h"
#include "virtual_gpu/split/context_lifetime.h"
#include "virtual_gpu/split/physical.h"

namespace cuslice {

EndingContext::EndingContext(Process& process, VirtualGpu* gpu, CUcontext context)
    : process_(process), gpu_(gpu), counts_(gpu && gpu->limited()), context_(context) {
    if (!counts_)
        return;
    gpu_->budget().begin_release();
    gpu_state().allocations.erase_context(gpu_state().contexts.known_id(context), take, this);
}

void EndingContext::take(const Allocation& allocation, void* self) {
    auto& ending = *static_cast<EndingContext*>(self);
    ending.bytes_ += allocation.bytes;
    if (is_managed(allocation))
        ending.managed_ += allocation.bytes;
    ending.allocations_.push_back(allocation);
}

void EndingContext::free_left_memory() {
    const LeftMemory left;
    if (!left)
        return;
    for (const Allocation& allocation : allocations_)
        if (!is_array(allocation))
            CUSLICE_PHYSICAL(cuMemFree_v2)(allocation.address);
}

// First the cache: what it keeps is no longer handed out once the bytes are somebody else's to reserve.
void EndingContext::ended() {
    if (context_ && process_.watches_work())
        process_.caches().context_ended(context_);
    free_left_memory();
    if (counts_) {
        gpu_->physical().managed_changed(-static_cast<int64_t>(managed_));
        gpu_->budget().end_release(bytes_);
    }
    gpu_state().contexts.ended(context_);
    if (gpu_)
        gpu_->context_gone();
    process_.forget_contexts();
}

void EndingContext::lives_on() {
    if (!counts_)
        return;
    for (const Allocation& allocation : allocations_)
        gpu_state().allocations.insert(allocation);
    gpu_->budget().cancel_release();
}

}  // namespace cuslice
