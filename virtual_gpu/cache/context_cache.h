#pragma once
#include "policy/allocator/caching_allocator.h"
#include "virtual_gpu/cache/block_attributes.h"
#include "virtual_gpu/cache/quiescence.h"
#include "virtual_gpu/driver/cuda_api.h"
#include "virtual_gpu/gpu/contexts.h"

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

    std::uint64_t take(std::uint64_t bytes, AllocationError* denied);
    bool give_back(std::uint64_t address, std::uint64_t bytes);
    std::uint64_t room();
    int quiesce(std::uint64_t address, bool for_program);
    int in_context() { return Quiescence::in_context(); }
    Fence fence(std::uint64_t address);
    bool past(std::uint64_t address, Fence* fence);
    bool passed(Fence fence, bool wait);
    void drop_fence(Fence fence);
    bool capturing();
    bool wanted();
    bool forget(std::uint64_t address);
    void thread_began();
    void changed();

  private:
    Quiescence& quiescence();
    bool enter_if_sole(CaptureTracker::Inside** inside) const;
    int quiesce_slowly(std::uint64_t address, bool for_program, CUresult in_context);
    Fence fence_slowly(std::uint64_t address);
    bool past_slowly(std::uint64_t address, Fence* fence);
    bool passed_slowly(Fence fence, bool wait);
};

// Made in context_cache.cpp.
using ContextAllocator = CachingAllocator<ContextBacking>;
extern template class CachingAllocator<ContextBacking>;

// What the caches of all contexts have together.
struct CacheCommons {
    Quiescence quiescence;
    BlockAttributes attributes;
    ContextAllocator::Map map;
    // What the caches of a GPU hold has changed.
    void (*tell_changed)(CacheCommons& self, VirtualGpu& gpu) = nullptr;
    // This thread keeps blocks from now on.
    void (*thread_began)(CacheCommons& self) = nullptr;
};

// The cache of one context.
struct ContextCache : ContextBacking {
    ContextAllocator allocator{*this};
    std::uint64_t gpu_bit = 0;          // of Reach
    std::uint64_t operations_seen = 0;  // the idle thread's
    std::atomic<unsigned> visitors{0};  // threads that may be in it though its context is another one's, or has ended

    void open(CacheCommons& all, VirtualGpu& on, CUcontext in, Contexts::Id number);
};

}  // namespace cuslice
