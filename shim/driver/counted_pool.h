#pragma once
#include "shim/driver/counted.h"

namespace cuslice {

// The shape of every hook in which a memory pool can grow. `undo` gives the allocation back and waits until the pool
// has it; false: it can't.
template <typename Call, typename Undo>
CUresult counted_from_pool(Function function, VirtualGpu* gpu, CUmemoryPool pool, std::uint64_t bytes, Call call,
                           Undo undo) {
    if (!gpu || !gpu->limited()) return call();
    MemoryPools::Growing growing(gpu->pools(), pool, bytes);
    std::uint64_t reserved = growing.at_most();
    LimitError why;
    if (!(growing.enter() && gpu->reserve_at_once(reserved))) {
        // Before pools are trimmed for it: this one may have what is needed. Whoever waits is outside, so that nobody
        // waits for it.
        gpu->siblings().given_back().publish_unsettled();
        bool on_spare = growing.enter_on_spare();
        if (!on_spare && gpu->reserve(reserved, &why))
            growing.enter_when_free();
        else if (!on_spare && !(on_spare = growing.enter_on_spare(true)))
            return refuse(function, *gpu, why, bytes);
        if (on_spare) {
            reserved = 0;
            gpu->budget().begin_release();
        }
    }
    HookReservation reservation(*gpu, reserved);
    const CUresult result = ask_driver(*gpu, bytes, call);
    if (result != CUDA_SUCCESS) return result;
    growing.allocated(reserved, gpu->budget());
    reservation.disown();
    if (pool == MemoryPools::kGraphs)
        gpu->siblings().given_back().publish_settled();  // its end gives back, where no hook is
    if (gpu->within_limit(&why) || gpu->siblings().given_back().within_limit() || !undo()) return result;
    gpu->refresh(true);
    why.requested = bytes;
    return refuse(function, *gpu, why);
}

}  // namespace cuslice
