// Releases of exported memory that a descriptor or another process may keep on the GPU.
#include <algorithm>
#include <cstdint>

#include "policy/base/cancellation.h"
#include "virtual_gpu/gpu/gpu_state.h"
#include "virtual_gpu/gpu/virtual_gpu.h"

namespace cuslice {

// Other members must not take for given back what NVML's figure loses now: they look at whole processes.
[[gnu::cold]] std::uint64_t VirtualGpu::before_exported_release() {
    const DisableCancellation locked;
    for (VirtualGpu* part : physical_->parts()) part->tell_unsettled();
    std::uint64_t own = 0;
    {
        const LockGuard lock(mutex());
        own = physical_->held() - std::min(physical_->held(), footprint().bytes() + footprint().unlisted().bytes());
    }
    return footprint().unlisted().begin(own);
}

[[gnu::cold]] void VirtualGpu::release_exported(std::uint64_t bytes, std::uint64_t before) {
    if (!footprint().exact()) return release_shared(bytes);
    const LockGuard lock(mutex());
    footprint().unlisted().keep(bytes, budget_, before);
}

// At once: mostly nobody keeps it, and a process that waits from here on is charged no more than it holds.
[[gnu::cold]] void VirtualGpu::after_exported_release() {
    const DisableCancellation locked;
    footprint().unlisted().end();
    refresh();
    for (VirtualGpu* part : physical_->parts()) part->tell_settled();
}

}  // namespace cuslice
