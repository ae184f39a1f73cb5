// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/late_release.h"

#include <algorithm>

#include "policy/base/cancellation.h"

namespace cuslice {

namespace {

// Hands the charge over to the driver's footprint. With the lock held; false where that can't be read.
bool take_over(VirtualGpu& gpu, uint64_t bytes) {
    PhysicalGpu& physical = gpu.physical();
    if (!physical.driver_footprint().take_over(bytes, gpu.budget(), physical.budgets()))
        return false;
    physical.publish_footprint();
    gpu.driver_gave_back();
    return true;
}

}  // namespace

void release_later(VirtualGpu& gpu, uint64_t bytes) {
    const LockGuard lock(gpu.physical().mutex());
    if (!take_over(gpu, bytes))
        gpu.budget().release(bytes);
}

void release_shared(VirtualGpu& gpu, uint64_t bytes) {
    const LockGuard lock(gpu.physical().mutex());
    take_over(gpu, bytes);
}

// Other members must not take for given back what NVML's figure loses now: they look at whole processes.
[[gnu::cold]] uint64_t before_exported_release(VirtualGpu& gpu) {
    const DisableCancellation locked;
    PhysicalGpu& physical = gpu.physical();
    DriverFootprint& footprint = physical.driver_footprint();
    for (VirtualGpu* part : physical.parts())
        part->siblings().given_back().publish_unsettled();
    uint64_t own = 0;
    {
        const LockGuard lock(physical.mutex());
        own = physical.held() - std::min(physical.held(), footprint.bytes() + footprint.unlisted().bytes());
    }
    return footprint.unlisted().begin(own);
}

[[gnu::cold]] void release_exported(VirtualGpu& gpu, uint64_t bytes, uint64_t before) {
    DriverFootprint& footprint = gpu.physical().driver_footprint();
    if (!footprint.exact())
        return release_shared(gpu, bytes);
    const LockGuard lock(gpu.physical().mutex());
    footprint.unlisted().keep(bytes, gpu.budget(), before);
}

// At once: mostly nobody keeps it, and a process that waits from here on is charged no more than it holds.
[[gnu::cold]] void after_exported_release(VirtualGpu& gpu) {
    const DisableCancellation locked;
    gpu.physical().driver_footprint().unlisted().end();
    gpu.refresh();
    for (VirtualGpu* part : gpu.physical().parts())
        part->siblings().given_back().publish_settled();
}

}  // namespace cuslice
