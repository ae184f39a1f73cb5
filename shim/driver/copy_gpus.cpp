// SPDX-License-Identifier: Apache-2.0
#include "shim/driver/copy_gpus.h"

#include "virtual_gpu/driver/table.h"

namespace cuslice {

constinit thread_local uint64_t CopyGpus::noted = 0;

// A copy may be given to a stream whose context is not current. The default streams are the current context's.
uint64_t CopyGpus::carrying_out(CUstream stream) {
    CUcontext context = nullptr;
    const bool own = stream && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD;
    if (own && CUSLICE_REAL(cuStreamGetCtx)(stream, &context) == CUDA_SUCCESS)
        if (const CUdevice device = gpu_state().contexts.device_of(context); device >= 0)
            return Reach::bit(device);
    const VirtualGpu* gpu = process().current().gpu;
    return gpu ? Reach::bit(gpu->ordinal()) : 0;
}

uint64_t CopyGpus::gpu_of(CUdeviceptr address) {
    const Caches& caches = process().caches();
    const Segment* segment = process().caches().map().segment(address);
    uint64_t gpu = 0;
    if (!segment)
        return gpu;
    caches.each([&](const ContextCache& cache) {
        if (&cache.allocator == segment->owner)
            gpu = cache.gpu_bit;
    });
    return gpu;
}

}  // namespace cuslice
