// SPDX-License-Identifier: Apache-2.0
// cuMemGetInfo: the slice. cuMemGetAddressRange: a block of a cache as the allocation that it stands for.
#include <algorithm>

#include "shim/driver/cached.h"
#include "shim/driver/export.h"
#include "virtual_gpu/gpu/memory_view.h"

namespace cuslice {

namespace {

// The slice as this thread's context has it; false where nothing is limited, and what the driver said stands. The
// driver has just answered, so there is a context; with one GPU it is known whose.
bool current_view(uint64_t physical_free, MemoryView* view) {
    if (inside_hook || !process().limits_anything())
        return false;
    const bool one = process().gpu_count() == 1 && process().gpu(0).measured();
    VirtualGpu* gpu = one ? &process().gpu(0) : process().current().gpu;
    if (!gpu || !gpu->bound())
        return false;
    *view = memory_view(*gpu, physical_free);
    return true;
}

// Programs may ask for one of two figures.
template <typename Out, typename Value>
void put(Out* out, Value value) {
    if (out)
        *out = static_cast<Out>(value);
}

// In a segment and in no block: nobody's memory.
bool is_unused(CUdeviceptr address) { return process().caches_anything() && address_map().segment(address); }

template <typename Real, typename Pointer, typename Size>
CUresult range(Real real, Pointer* base, Size* size, Pointer address) {
    const CUresult result = real(base, size, address);
    if (result != CUDA_SUCCESS)
        return result;
    const ContextAllocator::Found block = cached_block(address);
    if (block.address) {
        put(base, block.address);
        put(size, block.requested);
        return result;
    }
    if (const uint64_t bytes = process().caches().ipc_blocks().bytes_at(address)) {
        put(base, address);
        put(size, bytes);
        return result;
    }
    return is_unused(address) ? CUDA_ERROR_NOT_FOUND : result;
}

}  // namespace

CUSLICE_HOOK(cuMemGetInfo_v2, free, total) {
    const CUresult result = CUSLICE_REAL(cuMemGetInfo_v2)(free, total);
    MemoryView view;
    if (result != CUDA_SUCCESS || !current_view(free ? *free : 0, &view))
        return result;
    put(free, view.free);
    put(total, view.total);
    return result;
}

// The old form has 32 bits for each, which the driver fills as it sees fit; the slice can only be less.
CUSLICE_HOOK(cuMemGetInfo, free, total) {
    const CUresult result = CUSLICE_REAL(cuMemGetInfo)(free, total);
    MemoryView view;
    if (result != CUDA_SUCCESS || !current_view(~0ull, &view))
        return result;
    if (free)
        *free = static_cast<unsigned>(std::min<uint64_t>(*free, view.free));
    if (total)
        *total = static_cast<unsigned>(std::min<uint64_t>(*total, view.total));
    return result;
}

CUSLICE_HOOK_FORM(cuMemGetAddressRange, range, base, size, address)
CUSLICE_HOOK_FORM(cuMemGetAddressRange_v2, range, base, size, address)

}  // namespace cuslice
