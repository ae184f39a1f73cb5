// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/cache/context_cache.h"

#include <optional>

#include "policy/allocator/caching_allocator-inl.h"
#include "policy/base/cancellation.h"
#include "virtual_gpu/gpu/allocation_kind.h"
#include "virtual_gpu/gpu/charged_allocation.h"
#include "virtual_gpu/gpu/current_context.h"
#include "virtual_gpu/gpu/relaxed_captures.h"
#include "virtual_gpu/gpu/virtual_gpu.h"

namespace cuslice {

template class CachingAllocator<ContextBacking>;

bool ContextCache::driver_suffices() {
    return driver_slot(Function::cuCtxGetCurrent) && driver_slot(Function::cuCtxSynchronize);
}

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

inline bool ContextBacking::enter_if_sole(CaptureTracker::Inside** inside) const {
    return context == gpu_state().contexts.sole() && CaptureTracker::enter_at_once(inside);
}

[[gnu::noinline]] int ContextBacking::quiesce_elsewhere(uint64_t address, bool for_program) {
    const DisableCancellation uncancelled;
    return quiesce_slowly(address, for_program, Quiescence::in_context());
}

[[gnu::noinline]] int ContextBacking::quiesce_slowly(uint64_t address, bool for_program, int in_context) {
    const DisableCancellation uncancelled;  // others wait for who is asking
    if (for_program && in_context != CUDA_SUCCESS)
        return in_context;
    return quiescence().quiesce(context, address, for_program);
}

// From now on this thread can be counted in by a store, unless it could already.
Quiescence& ContextBacking::quiescence() {
    Quiescence& work = commons->quiescence;
    if (work.captures.list_thread())
        commons->thread_began(*commons);
    return work;
}

// Where the process has one context and captures nothing, this and the next two count the thread in by a store, as
// quiesce() does.
Fence ContextBacking::fence(uint64_t address) {
    CaptureTracker::Inside* inside;
    if (!enter_if_sole(&inside)) [[unlikely]]
        return fence_slowly(address);
    const Fence made = commons->quiescence.fences.make(&context, 1);
    CaptureTracker::leave_at_once(inside);
    return made;
}

[[gnu::noinline]] Fence ContextBacking::fence_slowly(uint64_t address) { return quiescence().fence(context, address); }

bool ContextBacking::past(uint64_t address, Fence* fence) {
    CaptureTracker::Inside* inside;
    if (!enter_if_sole(&inside)) [[unlikely]]
        return past_slowly(address, fence);
    const bool past = commons->quiescence.fences.past(context, fence);
    CaptureTracker::leave_at_once(inside);
    return past;
}

[[gnu::noinline]] bool ContextBacking::past_slowly(uint64_t address, Fence* fence) {
    return quiescence().past(context, address, fence);
}

bool ContextBacking::passed(Fence fence, bool wait) {
    CaptureTracker::Inside* inside;
    if (wait || !CaptureTracker::enter_at_once(&inside)) [[unlikely]]
        return passed_slowly(fence, wait);
    const bool passed = commons->quiescence.fences.passed(fence, false);
    CaptureTracker::leave_at_once(inside);
    return passed;
}

[[gnu::noinline]] bool ContextBacking::passed_slowly(Fence fence, bool wait) {
    return quiescence().passed(fence, wait);
}

uint64_t ContextBacking::room() { return gpu->room(); }

void ContextBacking::drop_fence(Fence fence) { commons->quiescence.fences.drop(fence); }

// A free of a thread whose mode is relaxed ends no capture.
bool ContextBacking::capturing() { return !RelaxedCaptures::possible() && commons->quiescence.captures.any_for_sure(); }

bool ContextBacking::wanted() { return gpu->siblings().trim_requested(); }

bool ContextBacking::forget(uint64_t address) { return commons->attributes.forget(address); }

void ContextBacking::thread_began() { commons->thread_began(*commons); }

void ContextBacking::changed() {
    gpu->poll_cached();
    commons->tell_changed(*commons, *gpu);
}

uint64_t ContextBacking::take(uint64_t bytes, AllocationError* denied) {
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
    // Preallocated memory is the program's already: to take it again, cut anew, ends no capture.
    std::optional<RelaxedCaptures> relaxed;
    if (on.slice().allocator == AllocatorMode::prealloc)
        relaxed.emplace();
    // Until it is written down whose the segment is.
    const CurrentContext current(context, CurrentContext::Of::known, true);
    const bool lives = current && cache.allocator.is_open();
    bool made = false;
    Reservation reservation(on.budget(), bytes);
    const CUresult result = charged_allocation(
        reservation, [&] { return lives ? CUSLICE_REAL(cuMemAlloc_v2)(&address, bytes) : CUDA_ERROR_INVALID_CONTEXT; },
        [&] {
            made = true;
            const Allocation segment{address, Budget::charged(bytes), id, static_cast<uint8_t>(on.ordinal()),
                                     static_cast<uint8_t>(Kind::memory)};
            return gpu_state().allocations.insert(segment) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
        },
        [&] {
            CUSLICE_REAL(cuMemFree_v2)
            (address);
        });
    if (result == CUDA_SUCCESS)
        return address;
    denied->by = made                                 ? AllocationError::By::host
                 : result == CUDA_ERROR_OUT_OF_MEMORY ? AllocationError::By::driver
                                                      : AllocationError::By::failure;
    denied->error = result;
    return 0;
}

bool ContextBacking::give_back(uint64_t address, uint64_t) {
    const auto& cache = static_cast<const ContextCache&>(*this);
    const DisableCancellation uncancelled;
    const RelaxedCaptures relaxed;
    std::optional<CaptureTracker::Asking> asking;
    if (!relaxed && !asking.emplace(quiescence().captures, CaptureTracker::Asking::Sure::yes))
        return false;
    const CurrentContext current(context);
    // If it has ended, so have its memory and the charge for it; there may be another one by its handle.
    if (!current || !cache.allocator.is_open())
        return true;
    const auto release = [&](CUresult, const Allocation& freed) {
        if (freed.address)
            release_freed(*gpu, freed);
    };
    return charged_free(
               address, [&] { return CUSLICE_REAL(cuMemFree_v2)(address); }, release) == CUDA_SUCCESS;
}

}  // namespace cuslice
