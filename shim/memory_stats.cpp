// SPDX-License-Identifier: Apache-2.0
// cuslice_memory_stats, for programs that ask (include/cuslice.h).
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "include/cuslice.h"
#include "policy/base/cancellation.h"
#include "shim/process/process.h"

namespace cuslice {

namespace {

// How large the structure was in the first version.
constexpr size_t kMinSize = offsetof(cuslice_stats, own_memory) + sizeof(cuslice_stats::own_memory);

cuslice_tally tally_of(const Tally& tally) { return {tally.current, tally.peak, tally.allocated, tally.freed}; }

int memory_stats(int device, cuslice_stats* stats) {
    if (!stats || stats->size < kMinSize)
        return CUDA_ERROR_INVALID_VALUE;
    if (!process().gpu_count())
        return CUDA_ERROR_NOT_INITIALIZED;
    const VirtualGpu* gpu = process().gpu_of(device);
    if (!gpu)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!gpu->caches() || !process().caches_anything())
        return CUDA_ERROR_NOT_SUPPORTED;
    const DisableCancellation uncancelled;
    const Statistics s = process().caches().statistics(*gpu);
    cuslice_stats all{};
    all.allocated = tally_of(s.allocated);
    all.requested = tally_of(s.requested);
    all.active = tally_of(s.active);
    all.reserved = tally_of(s.reserved);
    all.allocations = s.allocations;
    all.frees = s.frees;
    all.segments = s.segments;
    all.retries = s.retries;
    all.ooms = s.ooms;
    all.syncs = s.syncs;
    all.largest_free = s.largest_free;
    all.own_memory = s.own_memory;
    // A program may have been built with an older structure, or with a newer one.
    all.size = std::min(stats->size, sizeof all);
    std::memcpy(stats, &all, all.size);
    return CUDA_SUCCESS;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int cuslice_memory_stats(int device, struct cuslice_stats* stats) {
    return memory_stats(device, stats);
}

}  // namespace cuslice
