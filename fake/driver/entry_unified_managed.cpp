// Hints about managed memory. They change where memory lies, never what is in it; here it lies in one place, so that a
// good hint has nothing more to do.

#include "fake/driver/addresses.h"
#include "fake/driver/state.h"
#include "fake/driver/stream_pair.h"

using namespace cuslice::fake;

namespace {

/// A range of managed memory, and a place that is there.
CUresult check(Address address, std::size_t size, const CUmemLocation& place) {
    const Found found = find_block(address);
    if (!found || found.record.kind != BlockKind::Managed || size == 0) return CUDA_ERROR_INVALID_VALUE;
    if (size > found.record.asked - (address - found.base)) return CUDA_ERROR_INVALID_VALUE;
    switch (static_cast<int>(place.type)) {
        case CU_MEM_LOCATION_TYPE_HOST:
            return CUDA_SUCCESS;
        case CU_MEM_LOCATION_TYPE_DEVICE: {
            const Gpu* gpu = driver().gpu(place.id);
            // Documented: devices without concurrent managed access take no hints.
            return gpu == nullptr || gpu->spec.major < 6 ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
        }
        default:
            CUSLICE_UNSUPPORTED("hints about managed memory on a NUMA node");
    }
}

/// The place that the older forms name by an ordinal, or CU_DEVICE_CPU.
CUmemLocation place_of(CUdevice device) {
    return {device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE, device};
}

CUresult prefetch(CUdeviceptr address, size_t size, CUmemLocation place, unsigned flags, CUstream handle,
                  DefaultStream form) {
    Stream* stream = nullptr;
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult bad = find_stream(handle, form, stream); bad != CUDA_SUCCESS) return bad;
    return check(address, size, place);
}

CUresult prefetch_to(CUdeviceptr address, size_t size, CUdevice device, CUstream stream, DefaultStream form) {
    return prefetch(address, size, place_of(device), 0, stream, form);
}

CUresult advise(CUdeviceptr address, size_t size, CUmem_advise advice, const CUmemLocation& place) {
    if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
        return CUDA_ERROR_INVALID_VALUE;
    // What is said to whole memory names no place that matters.
    const bool of_place = advice != CU_MEM_ADVISE_SET_READ_MOSTLY && advice != CU_MEM_ADVISE_UNSET_READ_MOSTLY &&
                          advice != CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
    return check(address, size, of_place ? place : CUmemLocation{CU_MEM_LOCATION_TYPE_HOST, 0});
}

}  // namespace

CUSLICE_STREAM_PAIR(cuMemPrefetchAsync, prefetch_to, address, size, device, stream)
CUSLICE_STREAM_PAIR(cuMemPrefetchAsync_v2, prefetch, address, size, place, flags, stream)

CUSLICE_ENTRY(cuMemAdvise, address, size, advice, device) { return advise(address, size, advice, place_of(device)); }

CUSLICE_ENTRY(cuMemAdvise_v2, address, size, advice, place) { return advise(address, size, advice, place); }
