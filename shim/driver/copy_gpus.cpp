// SPDX-License-Identifier: Apache-2.0
#include "shim/driver/copy_gpus.h"

#include "virtual_gpu/driver/table.h"

namespace cuslice {

constinit thread_local uint64_t CopyGpus::noted = 0;

// A copy may be given to a stream whose context is not current. The default streams are the current context's.
uint64_t CopyGpus::carrying_out(CUstream stream) {
    const CUdevice device = is_default(stream) ? -1 : gpu_state().contexts.device_of_stream(stream);
    if (device >= 0)
        return Reach::bit(device);
    const VirtualGpu* gpu = process().current().gpu;
    return gpu ? Reach::bit(gpu->ordinal()) : 0;
}

uint64_t CopyGpus::gpu_of(CUdeviceptr address) {
    Caches& caches = process().caches();
    const Segment* const segment = caches.map().segment(address);
    if (!segment)
        return 0;
    uint64_t gpu = 0;
    caches.each([&](const ContextCache& cache) {
        if (&cache.allocator == segment->owner)
            gpu = cache.gpu_bit;
    });
    return gpu;
}

}  // namespace cuslice
