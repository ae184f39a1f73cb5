// Advice and prefetching for managed memory: 12 has a form by device and one (_v2) by location, 13 the latter alone.
// The prefetches are built twice: legacy and per-thread default stream (_ptsz).

#include "fake/runtime/versioned/form.h"

using namespace cuslice::fake;

namespace {

CUmemLocation driver_location(cudaMemLocation location) {
    return {static_cast<CUmemLocationType>(location.type), location.id};
}

cudaError_t prefetch_to(const void* pointer, size_t count, cudaMemLocation location, unsigned flags,
                        cudaStream_t stream) {
    return in_context(CU_STREAM(cuMemPrefetchAsync, 12020), address(pointer), count, driver_location(location), flags,
                      stream);
}

}  // namespace

#if CUSLICE_CUDART_VERSION >= 13000

cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t count, cudaMemLocation location, unsigned int flags,
                                 cudaStream_t stream) {
    return prefetch_to(pointer, count, location, flags, stream);
}

#ifndef __CUDA_API_PER_THREAD_DEFAULT_STREAM
cudaError_t cudaMemAdvise(const void* pointer, size_t count, cudaMemoryAdvise advice, cudaMemLocation location) {
    return in_context(CU(cuMemAdvise, 12020), address(pointer), count, static_cast<CUmem_advise>(advice),
                      driver_location(location));
}
#endif

#else

extern "C" {
cudaError_t prefetch_by_device(const void*, size_t, int, cudaStream_t) CUSLICE_EXPORT_STREAM_AS(cudaMemPrefetchAsync);
cudaError_t prefetch_by_location(const void*, size_t, cudaMemLocation, unsigned, cudaStream_t)
    CUSLICE_EXPORT_STREAM_AS(cudaMemPrefetchAsync_v2);
cudaError_t advise_by_device(const void*, size_t, cudaMemoryAdvise, int) CUSLICE_EXPORT_AS(cudaMemAdvise);
cudaError_t advise_by_location(const void*, size_t, cudaMemoryAdvise, cudaMemLocation)
    CUSLICE_EXPORT_AS(cudaMemAdvise_v2);
}

namespace {

/// cudaCpuDeviceId is the host in both; every other number is an ordinal.
cudaError_t device_or_host(int ordinal, CUdevice* device) {
    if (ordinal == cudaCpuDeviceId) {
        *device = CU_DEVICE_CPU;
        return cudaSuccess;
    }
    return device_handle(ordinal, device);
}

}  // namespace

cudaError_t prefetch_by_device(const void* pointer, size_t count, int ordinal, cudaStream_t stream) {
    return in_context([&] {
        CUdevice device = 0;
        const cudaError_t error = device_or_host(ordinal, &device);
        return error != cudaSuccess
                   ? error
                   : as_error(CU_STREAM(cuMemPrefetchAsync, 8000)(address(pointer), count, device, stream));
    });
}

cudaError_t prefetch_by_location(const void* pointer, size_t count, cudaMemLocation location, unsigned flags,
                                 cudaStream_t stream) {
    return prefetch_to(pointer, count, location, flags, stream);
}

#ifndef __CUDA_API_PER_THREAD_DEFAULT_STREAM
cudaError_t advise_by_device(const void* pointer, size_t count, cudaMemoryAdvise advice, int ordinal) {
    return in_context([&] {
        CUdevice device = 0;
        const cudaError_t error = device_or_host(ordinal, &device);
        return error != cudaSuccess ? error
                                    : as_error(CU(cuMemAdvise, 8000)(address(pointer), count,
                                                                     static_cast<CUmem_advise>(advice), device));
    });
}

cudaError_t advise_by_location(const void* pointer, size_t count, cudaMemoryAdvise advice, cudaMemLocation location) {
    return in_context(CU(cuMemAdvise, 12020), address(pointer), count, static_cast<CUmem_advise>(advice),
                      driver_location(location));
}
#endif

#endif
