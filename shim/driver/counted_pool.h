// SPDX-License-Identifier: Apache-2.0
#pragma once
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
    if (!undo())
        return result;
    gpu->refresh(true);
    why.requested = bytes;
    return refuse(function, *gpu, why);
}

}  // namespace cuslice
