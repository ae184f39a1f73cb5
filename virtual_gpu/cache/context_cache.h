// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/allocator/caching_allocator.h"
#include "virtual_gpu/cache/block_attributes.h"
#include "virtual_gpu/cache/quiescence.h"
#include "virtual_gpu/driver/cuda_api.h"
#include "virtual_gpu/driver/table.h"
#include "virtual_gpu/gpu/contexts.h"
#include "virtual_gpu/gpu/gpu_state.h"

namespace cuslice {

class VirtualGpu;

struct CacheCommons;

// Where the caching allocator of one context has its segments from: they are cuMemAlloc's, made in that context and
// charged to its GPU. See Backing.
struct ContextBacking {
    CacheCommons* commons = nullptr;
    VirtualGpu* gpu = nullptr;
    CUcontext context = nullptr;
    Contexts::Id id = 0;

    uint64_t take(uint64_t bytes, AllocationError* denied);
    bool give_back(uint64_t address, uint64_t bytes);
    uint64_t room();
    [[gnu::always_inline]] int quiesce(uint64_t address, bool for_program);
    int in_context() { return Quiescence::in_context(); }
    Fence fence(uint64_t address);
    bool past(uint64_t address, Fence* fence);
    bool passed(Fence fence, bool wait);
    void drop_fence(Fence fence);
    bool capturing();
    bool wanted();
    bool forget(uint64_t address);
    void thread_began();
    void changed();

  private:
    Quiescence& quiescence();
    bool enter_if_sole(CaptureTracker::Inside** inside) const;
    int quiesce_elsewhere(uint64_t address, bool for_program);
    int quiesce_slowly(uint64_t address, bool for_program, int in_context);
    Fence fence_slowly(uint64_t address);
    bool past_slowly(uint64_t address, Fence* fence);
    bool passed_slowly(Fence fence, bool wait);
};

// Mostly the process has one context, which is current, and captures nothing. Then the thread is counted in by a store.
// Inline, as every free with `strict` passes here; what else there is to do is apart, so that it saves few registers.
inline int ContextBacking::quiesce(uint64_t address, bool for_program) {
    CaptureTracker::Inside* inside;
    if (!CaptureTracker::enter_at_once(&inside)) [[unlikely]]
        return quiesce_elsewhere(address, for_program);
    CUcontext asked_for = nullptr;
    CUSLICE_REAL(cuCtxGetCurrent).filled(&asked_for);
    const CUcontext current = asked_for;
    if (!current || current != gpu_state().contexts.sole()) [[unlikely]] {
        CaptureTracker::leave_at_once(inside);
        return quiesce_elsewhere(address, for_program);
    }
    const CUresult result = CUSLICE_REAL(cuCtxSynchronize).filled();
    CaptureTracker::leave_at_once(inside);
    if (result == CUDA_SUCCESS) [[likely]]
        return 0;
    return is_of_capture(result) ? quiesce_slowly(address, for_program, CUDA_SUCCESS) : result;
}

// Made in context_cache.cpp.
using ContextAllocator = CachingAllocator<ContextBacking>;
extern template class CachingAllocator<ContextBacking>;

// State that the caches of all contexts share.
struct CacheCommons {
    Quiescence quiescence;
    BlockAttributes attributes;
    ContextAllocator::Map map;
    // Called when the memory in a GPU's caches has changed.
    void (*tell_changed)(CacheCommons& self, VirtualGpu& gpu) = nullptr;
    // This thread keeps blocks from now on.
    void (*thread_began)(CacheCommons& self) = nullptr;
};

// The cache of one context.
struct ContextCache : ContextBacking {
    ContextAllocator allocator{*this};
    uint64_t gpu_bit = 0;               // of Reach
    uint64_t operations_seen = 0;       // the idle thread's
    std::atomic<unsigned> visitors{0};  // threads that may be in it though its context is another one's, or has ended

    // Looks up what a cache asks the driver in each call; false if the driver lacks it, and can have no cache. To be
    // called before the first one.
    static bool driver_suffices();
    void open(CacheCommons& all, VirtualGpu& on, CUcontext in, Contexts::Id number);
};

}  // namespace cuslice
