#include "virtual_gpu/cache/context_cache.h"

#include "policy/allocator/caching_allocator-inl.h"
#include "policy/base/cancellation.h"
#include "virtual_gpu/gpu/allocation_kind.h"
#include "virtual_gpu/gpu/charged_allocation.h"
#include "virtual_gpu/gpu/current_context.h"
#include "virtual_gpu/gpu/relaxed_captures.h"
#include "virtual_gpu/gpu/virtual_gpu.h"

namespace cuslice {

template class CachingAllocator<ContextBacking>;

void ContextCache::open(CacheCommons& all, VirtualGpu& on, CUcontext in, Contexts::Id number) {
    commons = &all;
    gpu = &on;
    context = in;
    gpu_bit = Reach::bit(gpu_state().contexts.device_of(in));
    id = number;
    const Slice& slice = on.slice();
    ContextAllocator::Options options;
    options.preallocate = slice.allocator == AllocatorMode::prealloc;
    options.reuse =
        slice.free == FreeMode::deferred ? ContextAllocator::Reuse::deferred : ContextAllocator::Reuse::strict;
    allocator.open(all.map, options);
}

// Mostly the process has one context, which is current, and captures nothing. Then this and the next three end in a
// tail call, for which no registers need be saved.
int ContextBacking::quiesce(std::uint64_t address, bool for_program) {
    Quiescence& work = commons->quiescence;
    CUcontext current = nullptr;
    const CUresult asked = CUSLICE_REAL(cuCtxGetCurrent)(&current);
    if (current && current == gpu_state().contexts.sole() && work.captures.none_known()) [[likely]]
        return CUSLICE_REAL(cuCtxSynchronize)();
    if (for_program && !current) return asked != CUDA_SUCCESS ? asked : CUDA_ERROR_INVALID_CONTEXT;
    return work.quiesce(context, address, for_program);
}

Fence ContextBacking::fence(std::uint64_t address) {
    Quiescence& work = commons->quiescence;
    if (context == gpu_state().contexts.sole() && work.captures.none_known()) [[likely]]
        return work.fences.make(&context, 1);
    return work.fence(context, address);
}

bool ContextBacking::past(std::uint64_t address, Fence* fence) {
    Quiescence& work = commons->quiescence;
    if (context == gpu_state().contexts.sole() && work.captures.none_known()) [[likely]]
        return work.fences.past(context, fence);
    *fence = work.fence(context, address);
    if (!*fence || !work.passed(*fence, false)) return false;
    *fence = 0;
    return true;
}

bool ContextBacking::passed(Fence fence, bool wait) {
    Quiescence& work = commons->quiescence;
    if (work.captures.none_known()) [[likely]]
        return work.fences.passed(fence, wait);
    return work.passed(fence, wait);
}

std::uint64_t ContextBacking::room() { return gpu->room(); }

void ContextBacking::drop_fence(Fence fence) { commons->quiescence.fences.drop(fence); }

bool ContextBacking::capturing() { return commons->quiescence.captures.any_for_sure(); }

bool ContextBacking::wanted() { return gpu->asked_to_trim(); }

bool ContextBacking::forget(std::uint64_t address) { return commons->attributes.forget(address); }

void ContextBacking::thread_began() { commons->thread_began(*commons); }

void ContextBacking::changed() {
    gpu->look_at_cached();
    commons->tell_changed(*commons, *gpu);
}

std::uint64_t ContextBacking::take(std::uint64_t bytes, AllocationError* denied) {
    const auto& cache = static_cast<const ContextCache&>(*this);
    VirtualGpu& on = *gpu;
    const DisableCancellation uncancelled;
    LimitError why;
    if (!on.reserve_segment(bytes, cache, &why)) {
        denied->by = AllocationError::By::limit;
        denied->over_limit = why;
        return 0;
    }
    CUdeviceptr address = 0;
    // Until it is written down whose the segment is.
    const CurrentContext current(context, CurrentContext::Of::known, true);
    const bool lives = current && cache.allocator.is_open();
    bool made = false;
    Reservation reservation(on.budget(), bytes);
    const CUresult result = charged_allocation(
        reservation, [&] { return lives ? CUSLICE_REAL(cuMemAlloc_v2)(&address, bytes) : CUDA_ERROR_INVALID_CONTEXT; },
        [&] {
            made = true;
            const Allocation segment{address, Budget::charged(bytes), id, static_cast<std::uint8_t>(on.ordinal()),
                                     static_cast<std::uint8_t>(Kind::memory)};
            return gpu_state().allocations.insert(segment) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
        },
        [&] {
            CUSLICE_REAL(cuMemFree_v2)
            (address);
        });
    if (result == CUDA_SUCCESS) return address;
    denied->by = made                                 ? AllocationError::By::host
                 : result == CUDA_ERROR_OUT_OF_MEMORY ? AllocationError::By::driver
                                                      : AllocationError::By::failure;
    denied->error = result;
    return 0;
}

bool ContextBacking::give_back(std::uint64_t address, std::uint64_t) {
    const auto& cache = static_cast<const ContextCache&>(*this);
    const DisableCancellation uncancelled;
    const RelaxedCaptures relaxed;
    const CurrentContext current(context, CurrentContext::Of::known);
    // If it has ended, so have its memory and the charge for it; there may be another one by its handle.
    if (!current || !cache.allocator.is_open()) return true;
    const auto release = [&](CUresult, const Allocation& freed) {
        if (freed.address) release_freed(*gpu, freed);
    };
    return charged_free(
               address, [&] { return CUSLICE_REAL(cuMemFree_v2)(address); }, release) == CUDA_SUCCESS;
}

}  // namespace cuslice
