#pragma once
#include "policy/allocator/caching_allocator.h"
#include "virtual_gpu/cache/notes.h"
#include "virtual_gpu/cache/quiescence.h"
#include "virtual_gpu/driver/cuda_api.h"
#include "virtual_gpu/gpu/contexts.h"

namespace cuslice {

class VirtualGpu;

// What the caches of all contexts have together.
struct CacheCommons {
    Quiescence quiescence;
    Notes notes;
    AddressMap map;
    // What the caches of a GPU hold has changed.
    void (*tell_changed)(CacheCommons& self, VirtualGpu& gpu) = nullptr;
    // This thread keeps blocks from now on.
    void (*thread_began)(CacheCommons& self) = nullptr;
};

// The caching allocator of one context: its segments are cuMemAlloc's, made in that context and charged to its GPU.
struct ContextCache {
    CachingAllocator allocator;
    CacheCommons* commons = nullptr;
    VirtualGpu* gpu = nullptr;
    CUcontext context = nullptr;
    std::uint64_t gpu_bit = 0;  // of Reach
    Contexts::Id id = 0;
    std::uint64_t operations_seen = 0;  // the idle thread's
    std::atomic<unsigned> visitors{0};  // threads that may be in it though its context is another one's, or has ended

    void open(CacheCommons& all, VirtualGpu& on, CUcontext in, Contexts::Id number);

  private:
    static int quiesce(void* self, std::uint64_t address, bool for_program);
    static Fence fence(void* self, std::uint64_t address);
    static bool past(void* self, std::uint64_t address, Fence* fence);
    static bool passed(void* self, Fence fence, bool wait);
    static std::uint64_t take(void* self, std::uint64_t bytes, Denied* denied);
    static bool give_back(void* self, std::uint64_t address, std::uint64_t bytes);
};

}  // namespace cuslice
