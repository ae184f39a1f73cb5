// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/memory_view.h"

#include <algorithm>

#include "policy/base/cancellation.h"
#include "virtual_gpu/gpu/gpu_state.h"

namespace cuslice {

namespace {

// A cache grows in multiples of this: what is left above them can't be had.
constexpr uint64_t kCacheStep = 2 << 20;

// VirtualGpu::room() once `given_back` of what is charged here has gone back.
uint64_t room_after(VirtualGpu& gpu, uint64_t given_back) {
    const auto left = [given_back](uint64_t most, uint64_t used) {
        const uint64_t now = used - std::min(used, given_back);
        return most - std::min(most, now);
    };
    const PhysicalGpu& physical = gpu.physical();
    const uint64_t used = gpu.budget().used();
    uint64_t room = left(gpu.budget().ceiling(), used);
    if (gpu.siblings().joined()) {
        const uint64_t in_accounts = gpu.siblings().sharing().budget().room_after(given_back);
        room = std::min({room, in_accounts, left(physical.total(), used)});
    }
    const uint64_t whole = physical.limit_of_all();
    if (!whole)
        return room;
    const uint64_t margin = physical.headroom();
    return std::min(room, left(whole - std::min(whole, margin), physical.counted_of_all()));
}

// With caches. Where the driver has taken some of the headroom, idle memory has to go back before anything is granted.
[[gnu::noinline]] MemoryView cached_view(VirtualGpu& gpu, uint64_t physical_free) {
    const DisableCancellation locked;
    const uint64_t idle = gpu_state().reclaimer->unused(gpu);
    const uint64_t free = std::min(room_after(gpu, idle), physical_free + idle);
    const uint64_t kept = free < idle ? 0 : idle;  // else it is all taken anew
    return {kept + (free - kept) / kCacheStep * kCacheStep, gpu.limit()};
}

}  // namespace

MemoryView memory_view(VirtualGpu& gpu, uint64_t physical_free) {
    gpu.enter(0, nullptr);
    gpu.siblings().take_back_dead_now_and_then();
    if (gpu.polling().stale()) {
        gpu.refresh_if_stale();
    } else if (gpu.pools().any()) {
        const DisableCancellation locked;
        gpu.pools().refresh(gpu.budget(), false);
    }
    if (gpu.caches())
        return cached_view(gpu, physical_free);
    return {std::min(gpu.room(), physical_free), gpu.limit()};
}

uint64_t limit_to_come(VirtualGpu& gpu) {
    Siblings& siblings = gpu.siblings();
    if (siblings.joined() || !gpu.slice().in_group || gpu.physical().is_split())
        return gpu.limit();
    return std::min(gpu.limit(), siblings.sharing().group_limit(gpu_state().sharing, gpu.identity().uuid));
}

}  // namespace cuslice
