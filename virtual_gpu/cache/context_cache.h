#pragma once
#include "policy/allocator/caching_allocator.h"
#include "virtual_gpu/contexts.h"
#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice {

class Caches;
class VirtualGpu;

// The caching allocator of one context: its segments are cuMemAlloc's, made in that context and charged to its GPU.
struct ContextCache {
    CachingAllocator allocator;
    Caches* set = nullptr;
    VirtualGpu* gpu = nullptr;
    CUcontext context = nullptr;
    std::uint64_t gpu_bit = 0;  // of Reach
    Contexts::Id id = 0;
    std::uint64_t operations_seen = 0;  // the idle thread's
    bool short_said = false;
    std::atomic<unsigned> visitors{0};  // threads that may be in it though its context is another one's, or has ended

    void open(Caches& caches, VirtualGpu& on, CUcontext in, Contexts::Id number);

  private:
    static int quiesce(void* self, std::uint64_t address, bool for_program);
    static Fence fence(void* self, std::uint64_t address);
    static bool past(void* self, std::uint64_t address, Fence* fence);
    static bool passed(void* self, Fence fence, bool wait);
    static std::uint64_t take(void* self, std::uint64_t bytes, Denied* denied);
    static bool give_back(void* self, std::uint64_t address, std::uint64_t bytes);
};

}  // namespace cuslice
