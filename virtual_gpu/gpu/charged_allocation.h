// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/budget/reservation.h"
#include "virtual_gpu/driver/cuda_api.h"
#include "virtual_gpu/gpu/allocation_kind.h"
#include "virtual_gpu/gpu/before_freeing.h"
#include "virtual_gpu/gpu/gpu_state.h"
#include "virtual_gpu/gpu/late_release.h"
#include "virtual_gpu/gpu/virtual_gpu.h"

namespace cuslice {

// How reserved bytes become an allocation, in hooks and caches alike:
//
//     VirtualGpu::reserve → charged_allocation: the driver's allocation → record → commit
//                                               or: undo, and roll back
//     charged_free: the driver's free → erase the record → release

// `reservation`, a Reservation or a class of it, holds what was reserved. `call` is the driver's allocation, `record`
// writes down who has it and returns CUDA_SUCCESS, or why the allocation can't stay; then `undo` gives it back to the
// driver. Returns the driver's status, or that of `record`. Whatever is returned but CUDA_SUCCESS, the budget is as it
// was before the reservation once that is gone.
template <typename Held, typename Call, typename Record, typename Undo>
CUresult charged_allocation(Held& reservation, Call call, Record record, Undo undo) {
    CUresult result = call();
    if (result != CUDA_SUCCESS)
        return result;
    if ((result = record()) == CUDA_SUCCESS)
        reservation.commit();
    else
        undo();
    return result;
}

// Gives back the bytes of a freed allocation, unless another process may still hold them.
inline void release_freed(VirtualGpu& gpu, const Allocation& freed) {
    is_exported(freed) ? release_shared(gpu, freed.bytes) : gpu.budget().release(freed.bytes);
}

// `call` is the driver's free of `address`. Then `release` is given the driver's status and the record, without an
// address if there was none or the driver has refused, and settles the budget. First the driver, then the record, then
// the bytes: between the first two another thread may get the address again and record it, which the table keeps apart.
template <typename Call, typename Release>
CUresult charged_free(CUdeviceptr address, Call call, Release release) {
    if (void (*const note)() = before_freeing.load(std::memory_order_relaxed)) [[unlikely]]
        note();
    gpu_state().frees.begin();
    const CUresult result = call();
    release(result, result == CUDA_SUCCESS ? gpu_state().allocations.erase(address) : Allocation{});
    gpu_state().frees.end();
    return result;
}

}  // namespace cuslice
