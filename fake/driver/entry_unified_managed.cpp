// SPDX-License-Identifier: Apache-2.0
// Hints about managed memory. They change where memory lies, never what is in it; here it lies in one place, so that a
// good hint has nothing more to do than to be remembered.

#include <cstring>
#include <vector>

#include "fake/driver/addresses.h"
#include "fake/driver/managed_hints.h"
#include "fake/driver/state.h"
#include "fake/driver/stream_pair.h"

using namespace cuslice::fake;

namespace {

/// The block that a range of managed memory is in.
CUresult find_managed(Address address, size_t size, Found& found) {
    found = find_block(address);
    if (!found || found.record.kind != BlockKind::Managed || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    return size > found.record.asked - (address - found.base) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/// A range of managed memory, and a place that is there.
CUresult check(Address address, size_t size, const CUmemLocation& place, Found& found) {
    CUSLICE_TRY(find_managed(address, size, found));
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

/// A place as it is told again: the host has no number.
CUmemLocation plain(const CUmemLocation& place) {
    return place.type == CU_MEM_LOCATION_TYPE_HOST ? place_of(CU_DEVICE_CPU) : place;
}

/// How an advice changes a page's hints.
auto change_of(CUmem_advise advice) -> void (*)(Hints&, CUmemLocation) {
    switch (advice) {
        case CU_MEM_ADVISE_SET_READ_MOSTLY:
            return [](Hints& hints, CUmemLocation) { hints.read_mostly = true; };
        case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
            return [](Hints& hints, CUmemLocation) { hints.read_mostly = false; };
        case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
            return [](Hints& hints, CUmemLocation place) { hints.preferred = place; };
        case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
            return [](Hints& hints, CUmemLocation) { hints.preferred = Hints::kNowhere; };
        case CU_MEM_ADVISE_SET_ACCESSED_BY:
            return [](Hints& hints, CUmemLocation place) { hints.accessed_by.insert(place.id); };
        default:
            return [](Hints& hints, CUmemLocation place) { hints.accessed_by.erase(place.id); };
    }
}

CUresult prefetch(CUdeviceptr address, size_t size, CUmemLocation place, unsigned flags, CUstream handle,
                  DefaultStream form) {
    Stream* stream = nullptr;
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_TRY(find_stream(handle, form, stream));
    Found found;
    CUSLICE_TRY(check(address, size, place, found));
    const auto change = [](Hints& hints, CUmemLocation to) { hints.prefetched = to; };
    const DriverLock hold;
    change_hints(found, address, size, change, plain(place));
    return CUDA_SUCCESS;
}

CUresult prefetch_to(CUdeviceptr address, size_t size, CUdevice device, CUstream stream, DefaultStream form) {
    return prefetch(address, size, place_of(device), 0, stream, form);
}

/// Ranges of managed memory as the batches name them.
struct Ranges {
    const CUdeviceptr* addresses;
    const size_t* sizes;
    size_t count;
};

/// Places of a batch: each is that of the ranges from its index to the next one's.
struct Places {
    const CUmemLocation* locations;
    const size_t* indices;
    size_t count;
};

CUresult check_batch(const Ranges& ranges, unsigned long long flags, CUstream handle, DefaultStream form) {
    if (ranges.addresses == nullptr || ranges.sizes == nullptr || ranges.count == 0 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_STREAM(stream, handle, form);
    if (stream->legacy)
        return CUDA_ERROR_INVALID_VALUE;  // documented: not the legacy stream. With which error is not.
    for (size_t i = 0; i < ranges.count; i++) {
        Found found;
        CUSLICE_TRY(find_managed(ranges.addresses[i], ranges.sizes[i], found));
    }
    return CUDA_SUCCESS;
}

/// Documented: the indices begin with 0, grow, and are those of ranges.
CUresult check_places(const Places& places, size_t ranges) {
    if (places.locations == nullptr || places.indices == nullptr || places.count == 0 || places.count > ranges)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < places.count; i++) {
        const bool in_order = i == 0 ? places.indices[0] == 0 : places.indices[i] > places.indices[i - 1];
        if (!in_order || places.indices[i] >= ranges)
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

/// Calls f(address, size, place) for every range, until one fails.
template <typename F>
CUresult each_place(const Ranges& ranges, const Places& places, F f) {
    for (size_t i = 0, place = 0; i < ranges.count; i++) {
        if (place + 1 < places.count && places.indices[place + 1] == i)
            place++;
        CUSLICE_TRY(f(ranges.addresses[i], ranges.sizes[i], places.locations[place]));
    }
    return CUDA_SUCCESS;
}

CUresult prefetch_batch(CUdeviceptr* addresses, size_t* sizes, size_t count, CUmemLocation* locations, size_t* indices,
                        size_t location_count, unsigned long long flags, CUstream stream, DefaultStream form) {
    const Ranges ranges{addresses, sizes, count};
    const Places places{locations, indices, location_count};
    CUSLICE_TRY(check_batch(ranges, flags, stream, form));
    CUSLICE_TRY(check_places(places, count));
    CUSLICE_TRY(each_place(ranges, places, [](CUdeviceptr address, size_t size, const CUmemLocation& place) {
        Found found;
        return check(address, size, place, found);
    }));
    return each_place(ranges, places, [&](CUdeviceptr address, size_t size, const CUmemLocation& place) {
        return prefetch(address, size, place, 0, stream, form);
    });
}

/// The contents of discarded memory are indeterminate: here they stay.
CUresult discard_batch(CUdeviceptr* addresses, size_t* sizes, size_t count, unsigned long long flags, CUstream stream,
                       DefaultStream form) {
    return check_batch({addresses, sizes, count}, flags, stream, form);
}

CUresult advise(CUdeviceptr address, size_t size, CUmem_advise advice, const CUmemLocation& place) {
    if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
        return CUDA_ERROR_INVALID_VALUE;
    // The other kinds of advice ignore the location: don't check it.
    const bool of_place = advice != CU_MEM_ADVISE_SET_READ_MOSTLY && advice != CU_MEM_ADVISE_UNSET_READ_MOSTLY &&
                          advice != CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
    Found found;
    const CUmemLocation anywhere{CU_MEM_LOCATION_TYPE_HOST, 0};
    CUSLICE_TRY(check(address, size, of_place ? place : anywhere, found));
    const DriverLock hold;
    change_hints(found, address, size, change_of(advice), plain(place));
    return CUDA_SUCCESS;
}

/// An attribute's integers: one, or of those that access it as many as there is room for.
std::vector<int> values_of(const Hints& hints, CUmem_range_attribute attribute, size_t room) {
    switch (attribute) {
        case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
            return {int{hints.read_mostly}};
        case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
        case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
            return {hints.preferred.id};
        case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY: {
            // The host after all GPUs, as NVIDIA's own tests of cuda.bindings expect it.
            const auto first_gpu = hints.accessed_by.upper_bound(CU_DEVICE_CPU);
            std::vector<int> all(first_gpu, hints.accessed_by.end());
            all.insert(all.end(), hints.accessed_by.begin(), first_gpu);
            all.resize(room, CU_DEVICE_INVALID);
            return all;
        }
        case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
        case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
            return {hints.prefetched.id};
        case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
            return {static_cast<int>(hints.preferred.type)};
        case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
            return {static_cast<int>(hints.prefetched.type)};
        default:
            return {};
    }
}

CUresult range_attributes(void** data, const size_t* sizes, const CUmem_range_attribute* attributes, size_t count,
                          CUdeviceptr address, size_t bytes) {
    Found found;
    if (data == nullptr || sizes == nullptr || attributes == nullptr || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_TRY(find_managed(address, bytes, found));
    for (size_t i = 0; i < count; i++) {
        const bool many = attributes[i] == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY;
        const bool fits = many ? sizes[i] != 0 && sizes[i] % sizeof(int) == 0 : sizes[i] == sizeof(int);
        const bool known = attributes[i] >= CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY &&
                           attributes[i] <= CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID;
        if (data[i] == nullptr || !known || !fits)
            return CUDA_ERROR_INVALID_VALUE;
    }
    const DriverLock hold;
    const Hints hints = common_hints(found, address, bytes);
    for (size_t i = 0; i < count; i++) {
        const std::vector<int> values = values_of(hints, attributes[i], sizes[i] / sizeof(int));
        std::memcpy(data[i], values.data(), values.size() * sizeof(int));
    }
    return CUDA_SUCCESS;
}

}  // namespace

CUSLICE_STREAM_PAIR(cuMemPrefetchAsync, prefetch_to, address, size, device, stream)
CUSLICE_STREAM_PAIR(cuMemPrefetchAsync_v2, prefetch, address, size, place, flags, stream)

CUSLICE_ENTRY(cuMemAdvise, address, size, advice, device) { return advise(address, size, advice, place_of(device)); }

CUSLICE_ENTRY(cuMemAdvise_v2, address, size, advice, place) { return advise(address, size, advice, place); }

CUSLICE_ENTRY(cuMemRangeGetAttribute, data, size, attribute, address, bytes) {
    return range_attributes(&data, &size, &attribute, 1, address, bytes);
}

CUSLICE_ENTRY(cuMemRangeGetAttributes, data, sizes, attributes, count, address, bytes) {
    return range_attributes(data, sizes, attributes, count, address, bytes);
}
CUSLICE_STREAM_PAIR(cuMemPrefetchBatchAsync, prefetch_batch, addresses, sizes, count, places, indices, place_count,
                    flags, stream)
CUSLICE_STREAM_PAIR(cuMemDiscardBatchAsync, discard_batch, addresses, sizes, count, flags, stream)
CUSLICE_STREAM_PAIR(cuMemDiscardAndPrefetchBatchAsync, prefetch_batch, addresses, sizes, count, places, indices,
                    place_count, flags, stream)
