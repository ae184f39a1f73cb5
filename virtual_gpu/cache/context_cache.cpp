#include "virtual_gpu/cache/context_cache.h"

#include "policy/base/cancellation.h"
#include "virtual_gpu/cache/relaxed_captures.h"
#include "virtual_gpu/gpu/allocation_kind.h"
#include "virtual_gpu/gpu/charged_allocation.h"
#include "virtual_gpu/gpu/current_context.h"
#include "virtual_gpu/gpu/virtual_gpu.h"

namespace cuslice {

void ContextCache::open(CacheCommons& all, VirtualGpu& on, CUcontext in, Contexts::Id number) {
    commons = &all;
    gpu = &on;
    context = in;
    gpu_bit = Reach::bit(gpu_state().contexts.device_of(in));
    id = number;
    Backing backing;
    backing.self = this;
    backing.take = take;
    backing.give_back = give_back;
    const auto of = [](void* self) -> ContextCache& { return *static_cast<ContextCache*>(self); };
    static constexpr auto kOf = of;
    backing.room = [](void* self) { return kOf(self).gpu->room(); };
    backing.quiesce = quiesce;
    backing.in_context = Quiescence::in_context;
    backing.fence = fence;
    backing.past = past;
    backing.passed = passed;
    backing.drop_fence = [](void* self, Fence fence) { kOf(self).commons->quiescence.fences.drop(fence); };
    backing.capturing = [](void* self) { return kOf(self).commons->quiescence.captures.any_for_sure(); };
    backing.forget = [](void* self, std::uint64_t address) { return kOf(self).commons->notes.forget(address); };
    backing.wanted = [](void* self) { return kOf(self).gpu->asked_to_trim(); };
    backing.thread_began = [](void* self) { kOf(self).commons->thread_began(*kOf(self).commons); };
    backing.changed = [](void* self) {
        kOf(self).gpu->look_at_cached();
        kOf(self).commons->tell_changed(*kOf(self).commons, *kOf(self).gpu);
    };
    const Slice& slice = on.slice();
    CachingAllocator::Options options;
    options.preallocate = slice.allocator == AllocatorMode::prealloc;
    options.reuse =
        slice.free == FreeMode::deferred ? CachingAllocator::Reuse::deferred : CachingAllocator::Reuse::strict;
    allocator.open(backing, all.map, options);
}

// Mostly the process has one context, which is current, and captures nothing. Then this and the next three end in a
// tail call, for which no registers need be saved.
int ContextCache::quiesce(void* self, std::uint64_t address, bool for_program) {
    auto& cache = *static_cast<ContextCache*>(self);
    Quiescence& work = cache.commons->quiescence;
    CUcontext current = nullptr;
    const CUresult asked = CUSLICE_REAL(cuCtxGetCurrent)(&current);
    if (current && current == gpu_state().contexts.sole() && work.captures.none_known()) [[likely]]
        return CUSLICE_REAL(cuCtxSynchronize)();
    if (for_program && !current) return asked != CUDA_SUCCESS ? asked : CUDA_ERROR_INVALID_CONTEXT;
    return work.quiesce(cache.context, address, for_program);
}

Fence ContextCache::fence(void* self, std::uint64_t address) {
    auto& cache = *static_cast<ContextCache*>(self);
    Quiescence& work = cache.commons->quiescence;
    if (cache.context == gpu_state().contexts.sole() && work.captures.none_known()) [[likely]]
        return work.fences.make(&cache.context, 1);
    return work.fence(cache.context, address);
}

bool ContextCache::past(void* self, std::uint64_t address, Fence* fence) {
    auto& cache = *static_cast<ContextCache*>(self);
    Quiescence& work = cache.commons->quiescence;
    if (cache.context == gpu_state().contexts.sole() && work.captures.none_known()) [[likely]]
        return work.fences.past(cache.context, fence);
    *fence = work.fence(cache.context, address);
    if (!*fence || !work.passed(*fence, false)) return false;
    *fence = 0;
    return true;
}

bool ContextCache::passed(void* self, Fence fence, bool wait) {
    Quiescence& work = static_cast<ContextCache*>(self)->commons->quiescence;
    if (work.captures.none_known()) [[likely]]
        return work.fences.passed(fence, wait);
    return work.passed(fence, wait);
}

std::uint64_t ContextCache::take(void* self, std::uint64_t bytes, Denied* denied) {
    auto& cache = *static_cast<ContextCache*>(self);
    VirtualGpu& gpu = *cache.gpu;
    const DisableCancellation uncancelled;
    OverLimit why;
    if (!gpu.reserve_segment(bytes, cache, &why)) {
        denied->by = Denied::By::limit;
        denied->over_limit = why;
        return 0;
    }
    CUdeviceptr address = 0;
    // Until it is written down whose the segment is.
    const CurrentContext current(cache.context, CurrentContext::Of::known, true);
    const bool lives = current && cache.allocator.is_open();
    bool made = false;
    Reservation reservation(gpu.budget(), bytes);
    const CUresult result = charged_allocation(
        reservation, [&] { return lives ? CUSLICE_REAL(cuMemAlloc_v2)(&address, bytes) : CUDA_ERROR_INVALID_CONTEXT; },
        [&] {
            made = true;
            const Allocation segment{address, Budget::charged(bytes), cache.id,
                                     static_cast<std::uint8_t>(gpu.ordinal()), static_cast<std::uint8_t>(Kind::memory)};
            return gpu_state().allocations.insert(segment) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
        },
        [&] {
            CUSLICE_REAL(cuMemFree_v2)
            (address);
        });
    if (result == CUDA_SUCCESS) return address;
    denied->by = made                                 ? Denied::By::host
                 : result == CUDA_ERROR_OUT_OF_MEMORY ? Denied::By::driver
                                                      : Denied::By::failure;
    denied->error = result;
    return 0;
}

bool ContextCache::give_back(void* self, std::uint64_t address, std::uint64_t) {
    auto& cache = *static_cast<ContextCache*>(self);
    const DisableCancellation uncancelled;
    const RelaxedCaptures relaxed;
    const CurrentContext current(cache.context, CurrentContext::Of::known);
    // If it has ended, so have its memory and the charge for it; there may be another one by its handle.
    if (!current || !cache.allocator.is_open()) return true;
    const auto release = [&](CUresult, const Allocation& freed) {
        if (freed.address) release_freed(*cache.gpu, freed);
    };
    return charged_free(
               address, [&] { return CUSLICE_REAL(cuMemFree_v2)(address); }, release) == CUDA_SUCCESS;
}

}  // namespace cuslice
