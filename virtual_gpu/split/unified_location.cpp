// SPDX-License-Identifier: Apache-2.0
// Where managed memory is to be.
#include "virtual_gpu/split/functions.h"
#include "virtual_gpu/split/physical_copy.h"
#include "virtual_gpu/split/translate.h"

namespace cuslice {

namespace {

// The host stands beside the GPUs in the old forms.
void to_physical_or_host(CUdevice& device) {
    if (device != CU_DEVICE_CPU)
        to_physical(device);
}

constexpr auto prefetch_to = [](auto call, CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream) {
    to_physical_or_host(device);
    return call(address, bytes, device, stream);
};
constexpr auto prefetch = [](auto call, CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned flags,
                             CUstream stream) {
    to_physical(location);
    return call(address, bytes, location, flags, stream);
};
constexpr auto prefetch_batch = [](auto call, CUdeviceptr* addresses, size_t* sizes, size_t count,
                                   CUmemLocation* places, size_t* indices, size_t place_count, auto... rest) {
    return with_copy(
        places, place_count, [](CUmemLocation& location) { to_physical(location); },
        [&](CUmemLocation* real) { return call(addresses, sizes, count, real, indices, place_count, rest...); });
};

}  // namespace

namespace split_driver {

CUSLICE_SPLIT(cuMemAdvise, address, bytes, advice, device) {
    to_physical_or_host(device);
    return CUSLICE_PHYSICAL(cuMemAdvise)(address, bytes, advice, device);
}

CUSLICE_SPLIT(cuMemAdvise_v2, address, bytes, advice, location) {
    to_physical(location);
    return CUSLICE_PHYSICAL(cuMemAdvise_v2)(address, bytes, advice, location);
}

CUSLICE_SPLIT_FORM(cuMemPrefetchAsync, prefetch_to, address, bytes, device, stream)
CUSLICE_SPLIT_FORM(cuMemPrefetchAsync_ptsz, prefetch_to, address, bytes, device, stream)
CUSLICE_SPLIT_FORM(cuMemPrefetchAsync_v2, prefetch, address, bytes, location, flags, stream)
CUSLICE_SPLIT_FORM(cuMemPrefetchAsync_v2_ptsz, prefetch, address, bytes, location, flags, stream)
CUSLICE_SPLIT_FORM(cuMemPrefetchBatchAsync, prefetch_batch, addresses, sizes, count, places, indices, place_count,
                   flags, stream)
CUSLICE_SPLIT_FORM(cuMemPrefetchBatchAsync_ptsz, prefetch_batch, addresses, sizes, count, places, indices, place_count,
                   flags, stream)
CUSLICE_SPLIT_FORM(cuMemDiscardAndPrefetchBatchAsync, prefetch_batch, addresses, sizes, count, places, indices,
                   place_count, flags, stream)
CUSLICE_SPLIT_FORM(cuMemDiscardAndPrefetchBatchAsync_ptsz, prefetch_batch, addresses, sizes, count, places, indices,
                   place_count, flags, stream)

}  // namespace split_driver

}  // namespace cuslice
