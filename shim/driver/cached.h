// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "shim/driver/report.h"
#include "shim/entry.h"

namespace cuslice {

// Why a cache has no memory, as the driver would say it. Whoever is told looks at the other members of its accounts.
inline CUresult answer_denied(Function function, VirtualGpu& gpu, const AllocationError& denied, uint64_t asked) {
    const DisableCancellation uncancelled;
    switch (denied.by) {
        case AllocationError::By::limit:
            return refuse(function, gpu, denied.over_limit, asked);
        case AllocationError::By::driver:
        case AllocationError::By::failure:
            return static_cast<CUresult>(denied.error);
        default:
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
}

using DirectAllocation = CUresult (*)(CUdeviceptr*, uint64_t);

// For which nothing is free. Apart, as the next one is, so that a hook needs few registers where something is.
template <Function function, DirectAllocation direct>
[[gnu::noinline]] CUresult cached_allocation_slowly(CUdeviceptr* pointer, uint64_t bytes) {
    const Process::Current current = Process::last_current();
    VirtualGpu& gpu = *current.gpu;
    AllocationError denied;
    const uint64_t address = current.cache->allocate_slowly(bytes, &denied);
    if (!address && denied.by == AllocationError::By::place) {
        report_no_map(gpu);
        return direct(pointer, bytes);
    }
    if (!address)
        return answer_denied(function, gpu, denied, bytes);
    *pointer = address;
    return CUDA_SUCCESS;
}

// The same of a block that the thread's own magazine doesn't have.
template <Function function, DirectAllocation direct>
[[gnu::noinline]] CUresult cached_allocation_beyond_magazine(CUdeviceptr* pointer, uint64_t bytes) {
    const Process::Current& current = Process::last_current();
    if (process().caches().better_direct(*current.gpu, bytes)) [[unlikely]] {
        const CUresult result = direct(pointer, bytes);
        if (result != CUDA_ERROR_OUT_OF_MEMORY)
            return result;
    }
    const uint64_t address = bytes > SizeClass::kMax ? current.cache->allocate_at_once(bytes) : 0;
    if (!address)
        return cached_allocation_slowly<function, direct>(pointer, bytes);
    *pointer = address;
    return CUDA_SUCCESS;
}

// An allocation that may come out of a cache; `direct` makes it of the driver where there is none.
template <Function function, DirectAllocation direct>
[[gnu::always_inline]] inline CUresult cached_allocation(CUdeviceptr* pointer, uint64_t bytes) {
    if (inside_hook || !pointer || !bytes)
        return direct(pointer, bytes);
    ContextAllocator* const cache = process().current_cache();
    if (!cache)
        return direct(pointer, bytes);
    const uint64_t address = bytes <= SizeClass::kMax ? cache->allocate_at_once(bytes) : 0;
    if (!address)
        return cached_allocation_beyond_magazine<function, direct>(pointer, bytes);
    *pointer = address;
    return CUDA_SUCCESS;
}

// The driver's answer to a free in a cache: not of `not_ours`.
inline CUresult answer_freed(ContextAllocator::Freed freed, int error) {
    if (freed == ContextAllocator::Freed::done) [[likely]]
        return CUDA_SUCCESS;
    return freed == ContextAllocator::Freed::failed ? static_cast<CUresult>(error) : CUDA_ERROR_INVALID_VALUE;
}

// Frees a block of a cache. False if the address is in none: it is the driver's to answer.
inline bool cached_free(CUdeviceptr address, CUresult* result) {
    if (inside_hook || !address)
        return false;
    int error = 0;
    const ContextAllocator::Freed freed = ContextAllocator::free(address_map(), address, &error);
    if (freed == ContextAllocator::Freed::not_ours)
        return false;
    *result = answer_freed(freed, error);
    return true;
}

// The same for the hook that is called most; `direct` asks the driver. What there is to do for a small block, and for
// any other, is apart, so that the other one's registers aren't saved.
using DirectFree = CUresult (*)(CUdeviceptr);

[[gnu::noinline]] inline CUresult free_small_cached(Span* span, CUdeviceptr address) {
    int error = 0;
    const ContextAllocator::Freed freed = ContextAllocator::free(*span, address, &error);
    return answer_freed(freed, error);
}

template <DirectFree direct>
[[gnu::noinline]] CUresult free_large_cached(AddressMap::Entry entry, CUdeviceptr address) {
    int error = 0;
    const auto freed = ContextAllocator::free(address_map(), entry, address, &error);
    return freed == ContextAllocator::Freed::not_ours ? direct(address) : answer_freed(freed, error);
}

template <DirectFree direct>
[[gnu::cold, gnu::noinline]] CUresult free_maybe_inside(CUdeviceptr address) {
    CUresult result = CUDA_SUCCESS;
    return cached_free(address, &result) ? result : direct(address);
}

template <DirectFree direct>
[[gnu::always_inline]] inline CUresult cached_free_or(CUdeviceptr address) {
    if (hook_frame.stack.any() || !address) [[unlikely]]
        return free_maybe_inside<direct>(address);
    const AddressMap::Entry entry = address_map().entry_at(address);
    if (Span* span = AddressMap::span_of(entry)) [[likely]]
        return free_small_cached(span, address);
    return free_large_cached<direct>(entry, address);
}

// The block that an address is in, if it is a cache's.
inline ContextAllocator::Found cached_block(CUdeviceptr address) {
    if (!meets_caches())
        return {};
    return ContextAllocator::find(address_map(), address);
}

}  // namespace cuslice
