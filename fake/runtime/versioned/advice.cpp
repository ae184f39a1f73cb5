// SPDX-License-Identifier: Apache-2.0
// Advice and prefetching for managed memory: 12 has a form by device and one (_v2) by location, 13 the latter alone.
// The prefetches are built twice: legacy and per-thread default stream (_ptsz).

#include "fake/runtime/versioned/form.h"

using namespace cuslice::fake;

#if CUSLICE_CUDART_VERSION >= 13000

CUSLICE_FORWARD_STREAM(cudaMemPrefetchAsync, cuMemPrefetchAsync, 12020, pointer, count, location, flags, stream)
CUSLICE_FORWARD_STREAM(cudaMemPrefetchBatchAsync, cuMemPrefetchBatchAsync, 13000, pointers, sizes, count, locations,
                       indices, location_count, flags, stream)
CUSLICE_FORWARD_STREAM(cudaMemDiscardBatchAsync, cuMemDiscardBatchAsync, 13000, pointers, sizes, count, flags, stream)
CUSLICE_FORWARD_STREAM(cudaMemDiscardAndPrefetchBatchAsync, cuMemDiscardAndPrefetchBatchAsync, 13000, pointers, sizes,
                       count, locations, indices, location_count, flags, stream)
#ifndef __CUDA_API_PER_THREAD_DEFAULT_STREAM
CUSLICE_FORWARD(cudaMemAdvise, cuMemAdvise, 12020, pointer, count, advice, location)
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

/// Hands the driver's handle of a device to `call`. cudaCpuDeviceId is the host in both; every other number is an
/// ordinal.
template <class Call>
cudaError_t on_device_or_host(int ordinal, Call call) {
    return in_context([&] {
        CUdevice device = CU_DEVICE_CPU;
        CUSLICE_TRY(ordinal == cudaCpuDeviceId ? cudaSuccess : device_handle(ordinal, &device));
        return as_error(call(device));
    });
}

}  // namespace

cudaError_t prefetch_by_device(const void* pointer, size_t count, int ordinal, cudaStream_t stream) {
    return on_device_or_host(ordinal, [&](CUdevice device) {
        return CU_STREAM(cuMemPrefetchAsync, 8000)(address(pointer), count, device, stream);
    });
}

CUSLICE_FORWARD_STREAM(prefetch_by_location, cuMemPrefetchAsync, 12020, pointer, count, location, flags, stream)

#ifndef __CUDA_API_PER_THREAD_DEFAULT_STREAM
cudaError_t advise_by_device(const void* pointer, size_t count, cudaMemoryAdvise advice, int ordinal) {
    return on_device_or_host(ordinal, [&](CUdevice device) {
        return CU(cuMemAdvise, 8000)(address(pointer), count, static_cast<CUmem_advise>(advice), device);
    });
}

CUSLICE_FORWARD(advise_by_location, cuMemAdvise, 12020, pointer, count, advice, location)
#endif

#endif
