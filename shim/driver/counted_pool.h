// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include "shim/driver/counted.h"

namespace cuslice {

enum class PoolRoom { none, reserved, spare };

// Before pools are trimmed for it: this one may have what is needed to spare. Whoever waits is outside, so that nobody
// waits for it.
inline PoolRoom room_to_grow(VirtualGpu& gpu, MemoryPools::Growing& growing, uint64_t bytes, LimitError* why) {
    gpu.siblings().given_back().publish_unsettled();
    if (growing.enter_on_spare())
        return PoolRoom::spare;
    if (gpu.reserve(bytes, why)) {
        growing.enter_when_free();
        return PoolRoom::reserved;
    }
    return growing.enter_on_spare(true) ? PoolRoom::spare : PoolRoom::none;
}

// A pool has taken more than anybody could know beforehand, and the limit is exceeded. True if what pools keep in
// reserve makes up for that. `*with_it`: bytes in use.
[[gnu::cold, gnu::noinline]] inline bool fits_by_reserves(VirtualGpu& gpu, uint64_t* with_it, LimitError* why) {
    gpu.refresh(true);
    *with_it = gpu.budget().used();
    return gpu.within_limit(why) || gpu.siblings().given_back().within_limit();
}

// It doesn't, and the allocation was undone.
[[gnu::cold, gnu::noinline]] inline CUresult refuse_undone(Function function, VirtualGpu& gpu, uint64_t bytes,
                                                           uint64_t with_it, LimitError why) {
    gpu.refresh(true);
    const uint64_t taken = with_it - std::min(with_it, gpu.budget().used());
    why.used -= std::min(why.used, taken);
    why.requested = std::max(bytes, taken);
    return refuse(function, gpu, why, bytes);
}

// The shape of every hook in which a memory pool can grow. `undo` gives the allocation back and waits until the pool
// has it; false: it can't.
template <typename Call, typename Undo>
CUresult counted_from_pool(Function function, VirtualGpu* gpu, CUmemoryPool pool, uint64_t bytes, Call call,
                           Undo undo) {
    if (!gpu || !gpu->limited())
        return call();
    MemoryPools::Growing growing(gpu->pools(), pool, bytes);
    uint64_t reserved = growing.at_most();
    LimitError why;
    const bool at_once = growing.enter() && gpu->reserve_at_once(reserved);
    if (!at_once) {
        const PoolRoom room = room_to_grow(*gpu, growing, reserved, &why);
        if (room == PoolRoom::none)
            return refuse(function, *gpu, why, bytes);
        if (room == PoolRoom::spare) {
            reserved = 0;
            gpu->budget().begin_release();
        }
    }
    HookReservation reservation(*gpu, reserved);
    const CUresult result = ask_driver(*gpu, bytes, call);
    if (result != CUDA_SUCCESS)
        return result;
    growing.allocated(reserved, gpu->budget());
    reservation.disown();
    if (pool == MemoryPools::kGraphs)
        gpu->siblings().given_back().publish_settled();  // its end gives back, where no hook is
    if (gpu->within_limit(&why) || gpu->siblings().given_back().within_limit())
        return result;
    uint64_t with_it = 0;
    if (fits_by_reserves(*gpu, &with_it, &why) || !undo())
        return result;
    return refuse_undone(function, *gpu, bytes, with_it, why);
}

}  // namespace cuslice
