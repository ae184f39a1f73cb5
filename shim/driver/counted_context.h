#pragma once
// Shared by the hooks of contexts: takes a place among those who share the GPU before a context is made, and releases
// what ends with it.
#include <algorithm>

#include "policy/base/page_vector.h"
#include "shim/driver/counted.h"
#include "shim/driver/holdings.h"
#include "shim/driver/recorded.h"
#include "virtual_gpu/driver/scratch.h"
#include "virtual_gpu/gpu/context_kind.h"
#include "virtual_gpu/gpu/visit.h"
#include "virtual_gpu/split/context_end.h"
#include "virtual_gpu/split/physical.h"

namespace cuslice {

// The allocations of a context that is about to end, out of the table, so that nobody else's allocation at the same
// address is taken for one of them. Given back if the context lives on.
class Ending {
  public:
    Ending(VirtualGpu* gpu, CUcontext context) : gpu_(gpu && gpu->limited() ? gpu : nullptr), context_(context) {
        if (!gpu_) return;
        note_holdings();
        gpu_->budget().begin_release();
        hook_frame.reserving = &gpu_->budget();
        gpu_state().allocations.erase_context(gpu_state().contexts.known_id(context), take, this);
    }
    ~Ending() {
        hook_frame.reserving = nullptr;
        allocations_.release();
    }
    Ending(const Ending&) = delete;
    Ending& operator=(const Ending&) = delete;

    void ended() {
        if (const LeftMemory left; left)
            for (const Allocation& allocation : allocations_)
                if (!is_array(allocation)) CUSLICE_PHYSICAL(cuMemFree_v2)(allocation.address);
        if (gpu_) gpu_->managed_changed(-static_cast<std::int64_t>(managed_));
        if (gpu_) gpu_->budget().end_release(bytes_);
        gpu_state().contexts.ended(context_);
        if (gpu_) gpu_->context_gone();
        process().forget_contexts();
    }
    void lives_on() {
        if (!gpu_) return;
        for (const Allocation& allocation : allocations_) gpu_state().allocations.insert(allocation);
        gpu_->budget().cancel_release();
    }

  private:
    static void take(const Allocation& allocation, void* self) {
        auto& ending = *static_cast<Ending*>(self);
        ending.bytes_ += allocation.bytes;
        if (is_managed(allocation)) ending.managed_ += allocation.bytes;
        ending.allocations_.push_back(allocation);
    }
    VirtualGpu* gpu_;
    CUcontext context_;
    std::uint64_t bytes_ = 0, managed_ = 0;
    PageVector<Allocation> allocations_;
};

// A call that ends a context: what was in it and what it took itself are given back. `gpu` and `context` may be null,
// when we know nothing of it; `primary`, if it isn't the primary one.
template <typename Call>
CUresult counted_end(VirtualGpu* gpu, CUcontext context, const PrimaryContext* primary, Call call) {
    DriverFootprint::Step step;
    if (gpu && gpu->limited()) step = gpu->before_driver_step();
    CUresult result;
    {
        const ContextEnd end(context), no_retain(primary);
        Ending ending(gpu, context);
        result = recorded_end(context, call);
        if (result == CUDA_SUCCESS && context && process().caches_anything()) process().caches().context_ended(context);
        result == CUDA_SUCCESS ? ending.ended() : ending.lives_on();
    }
    if (result == CUDA_SUCCESS && gpu && gpu->limited()) gpu->after_context_end(step);
    return result;
}

inline VirtualGpu* gpu_if(bool counts, CUdevice device) { return counts ? process().gpu_of(device) : nullptr; }

// Before a context: the slice may have to be reserved first, among everybody's on this host.
inline CUresult join_others(VirtualGpu* gpu) {
    if (!gpu || !gpu->limited() || !gpu_state().sharing.any()) return CUDA_SUCCESS;
    const Scratch<Refusal> refusal;
    if (!refusal) return CUDA_ERROR_OUT_OF_MEMORY;
    gpu->join(gpu_state().sharing, &*refusal);
    return answer_place(*gpu, *refusal);
}

// How a context with these flags would be made; 0 where its size isn't looked up.
inline std::uint64_t kind_of_context(const VirtualGpu* gpu, unsigned flags) {
    if (!gpu || !gpu->limited() || !gpu_state().sharing.any()) return 0;
    int version = 0;
    CUSLICE_REAL(cuDriverGetVersion)(&version);
    return context_kind(gpu_state().sharing.context_kind, flags, version);
}

// The shape of every call that makes a context. One that is known not to fit is never made.
template <typename Call, typename Undo>
CUresult counted_first_context(Function function, VirtualGpu* gpu, std::uint64_t kind, Call call, Undo undo) {
    const CUresult result = counted_step(function, gpu, call, undo, kind ? gpu->known_context(kind) : 0);
    if (result == CUDA_SUCCESS && kind) gpu->note_context(kind);
    return result;
}

// One use of the primary context less, unless it may be the last. The driver has heard of it before anybody else's last
// one.
template <typename Call>
bool released_one_of_several(PrimaryContext& primary, Call call, CUresult* result) {
    const Visit no_end(&primary);
    unsigned retains = primary.retains.load();
    do {
        if (retains <= 1) return false;
    } while (!primary.retains.compare_exchange_weak(retains, retains - 1));
    *result = call();
    if (*result != CUDA_SUCCESS) primary.retains++;
    return true;
}

// Gives up one use of the primary context. Whether that ends it is asked of the driver afterwards: NVIDIA's runtime may
// retain it where no hook is.
template <typename Call>
CUresult counted_release(VirtualGpu* gpu, Call call) {
    if (!gpu) return call();
    PrimaryContext& primary = gpu->primary();
    CUresult result = CUDA_SUCCESS;
    if (released_one_of_several(primary, call, &result)) return result;
    const bool counts = gpu->limited();
    DriverFootprint::Step step;
    if (counts) step = gpu->before_driver_step();
    if (counts) gpu->budget().begin_release();
    hook_frame.reserving = counts ? &gpu->budget() : nullptr;
    bool ended = false;
    {
        const CUcontext context = primary.handle.load();
        const ContextEnd end(context), no_retain(&primary);
        const unsigned retains = primary.retains.load();
        result = call();
        ended = result == CUDA_SUCCESS && !primary_is_active(gpu->device());
        if (ended) {
            recorded_end(context, [] { return CUDA_SUCCESS; });
            process().forget_context(gpu, context);
        }
        if (result == CUDA_SUCCESS) primary.retains.store(ended ? 0 : std::max(1u, retains) - 1);
    }
    hook_frame.reserving = nullptr;
    if (counts) gpu->budget().cancel_release();
    if (counts && ended) gpu->after_context_end(step);
    return result;
}

// Logs a new context and prepares its cache.
void new_context(VirtualGpu& gpu, CUcontext context, Contexts::Id id, CacheOfUnseen cache = CacheOfUnseen::prepared);

}  // namespace cuslice
