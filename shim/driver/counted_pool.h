#pragma once
#include "shim/driver/counted.h"

namespace cuslice {

// The shape of every hook in which a memory pool can grow. `undo` gives the allocation back and waits until the pool
// has it; false: it can't. `takes_nothing`: asked before a refusal, whether the call takes nothing now (it is being
// captured).
template <typename Call, typename Undo, typename TakesNothing>
CUresult counted_from_pool(Function function, VirtualGpu* gpu, CUmemoryPool pool, std::uint64_t bytes, Call call,
                           Undo undo, TakesNothing takes_nothing) {
    if (!gpu || !gpu->limited()) return call();
    MemoryPools& pools = gpu->pools();
    const MemoryPools::Growing growing(pools);
    std::uint64_t reserved = pools.growth_at_most(pool, bytes);
    OverLimit why;
    // Before pools are trimmed for it: this one may have what is needed.
    if (!gpu->reserve_at_once(reserved) && (pools.has_spare(pool, bytes) || !gpu->reserve(reserved, &why))) {
        if (!pools.has_spare(pool, bytes)) return takes_nothing() ? call() : refuse(function, *gpu, why, bytes);
        reserved = 0;
        gpu->budget().begin_release();
    }
    Reservation reservation(*gpu, reserved);
    const CUresult result = ask_driver(*gpu, bytes, call);
    if (result != CUDA_SUCCESS) return result;
    pools.allocated(pool, bytes, reserved, gpu->budget());
    reservation.disown();
    if (gpu->within_limit(&why) || !undo()) return result;
    gpu->refresh(true);
    why.requested = bytes;
    return refuse(function, *gpu, why);
}

}  // namespace cuslice
