#pragma once
#include "shim/driver/report.h"
#include "shim/entry.h"

namespace cuslice {

// Why a cache has no memory, as the driver would say it.
inline CUresult answer_denied(Function function, VirtualGpu& gpu, const AllocationError& denied, std::uint64_t asked) {
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

using DirectAllocation = CUresult (*)(CUdeviceptr*, std::uint64_t);

// What a thread's own magazine doesn't have. Apart, so that the hook needs few registers where it has.
template <Function function, DirectAllocation direct>
[[gnu::noinline]] CUresult cached_allocation_slowly(const Process::Current& current, CUdeviceptr* pointer,
                                                    std::uint64_t bytes) {
    VirtualGpu& gpu = *current.gpu;
    if (process().caches().better_direct(gpu, bytes)) [[unlikely]] {
        const CUresult result = direct(pointer, bytes);
        if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;
    }
    AllocationError denied;
    const std::uint64_t address = current.cache->allocate(bytes, &denied);
    if (!address && denied.by == AllocationError::By::place) {
        report_no_map(gpu);
        return direct(pointer, bytes);
    }
    if (!address) return answer_denied(function, gpu, denied, bytes);
    *pointer = address;
    return CUDA_SUCCESS;
}

// An allocation that may come out of a cache; `direct` makes it of the driver where there is none.
template <Function function, DirectAllocation direct>
[[gnu::always_inline]] inline CUresult cached_allocation(CUdeviceptr* pointer, std::uint64_t bytes) {
    if (inside_hook || !pointer || !bytes) return direct(pointer, bytes);
    const Process::Current& current = process().current();
    if (!current.cache) return direct(pointer, bytes);
    const std::uint64_t address = current.cache->allocate_at_once(bytes);
    if (!address) return cached_allocation_slowly<function, direct>(current, pointer, bytes);
    *pointer = address;
    return CUDA_SUCCESS;
}

// Frees a block of a cache. False if the address is in none: it is the driver's to answer.
inline bool cached_free(CUdeviceptr address, CUresult* result) {
    if (inside_hook || !address) return false;
    *result = CUDA_SUCCESS;
    int error = 0;
    switch (ContextAllocator::free(process().caches().map(), address, &error)) {
        case ContextAllocator::Freed::done:
            return true;
        case ContextAllocator::Freed::not_ours:
            return false;
        case ContextAllocator::Freed::invalid:
            *result = CUDA_ERROR_INVALID_VALUE;
            return true;
        case ContextAllocator::Freed::failed:
            *result = static_cast<CUresult>(error);
            return true;
    }
    return false;
}

// The block that an address is in, if it is a cache's.
inline ContextAllocator::Found cached_block(CUdeviceptr address) {
    if (!process().caches_anything() || inside_hook) return {};
    return ContextAllocator::find(process().caches().map(), address);
}

}  // namespace cuslice
