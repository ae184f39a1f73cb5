// SPDX-License-Identifier: Apache-2.0
// Physical memory (cuMemCreate), who may reach it, and for which GPUs tiles of an array are bound.
#include <algorithm>

#include "policy/base/out_parameter.h"
#include "virtual_gpu/split/access.h"
#include "virtual_gpu/split/current_context.h"
#include "virtual_gpu/split/functions.h"
#include "virtual_gpu/split/handle_registry.h"
#include "virtual_gpu/split/physical_copy.h"
#include "virtual_gpu/split/translate.h"

namespace cuslice {

namespace {

const void* as_handle(CUmemGenericAllocationHandle handle) { return reinterpret_cast<const void*>(handle); }

// True if this physical place stands for several virtual GPUs.
bool names_parts(const CUmemLocation& location) {
    const auto on_it = [&](const Split::Device& device) { return device.physical == location.id; };
    return location.type == CU_MEM_LOCATION_TYPE_DEVICE && std::ranges::count_if(split().devices(), on_it) > 1;
}

// Asks for no less than there is anywhere in the range already. Each step is a page of it or less.
void keep_access(CUdeviceptr address, size_t bytes, CUmemAccessDesc& wish) {
    constexpr size_t kStep = 2 << 20;
    for (size_t at = 0; at < bytes && wish.flags < CU_MEM_ACCESS_FLAGS_PROT_READWRITE; at += kStep) {
        unsigned long long now = 0;
        if (CUSLICE_PHYSICAL(cuMemGetAccess)(&now, &wish.location, address + at) != CUDA_SUCCESS)
            return;
        if (now > static_cast<unsigned long long>(wish.flags))
            wish.flags = static_cast<CUmemAccess_flags>(now);
    }
}

// A bit for each GPU. One that there is not becomes the last bit, which is no GPU's either.
void translate_tiles(CUarrayMapInfo& tiles) {
    constexpr unsigned kBits = 32;
    unsigned real = 0;
    for (unsigned i = 0; i < kBits; i++) {
        if (!(tiles.deviceBitMask >> i & 1))
            continue;
        const Split::Device* device = split().device(static_cast<int>(i));
        real |= 1u << (device ? static_cast<unsigned>(device->physical) : kBits - 1);
    }
    if (split().is_open())
        tiles.deviceBitMask = real;
}

constexpr auto map_tiles = [](auto call, CUarrayMapInfo* tiles, unsigned count, CUstream stream) {
    return with_copy(tiles, count, translate_tiles, [&](CUarrayMapInfo* real) { return call(real, count, stream); });
};

}  // namespace

namespace split_driver {

CUSLICE_SPLIT(cuMemCreate, handle, bytes, wish, flags) {
    if (!wish)
        return CUSLICE_PHYSICAL(cuMemCreate)(handle, bytes, wish, flags);
    CUmemAllocationProp real = *wish;
    to_physical(real.location);
    OutParameter<CUmemGenericAllocationHandle> made(handle);
    const CUresult result = CUSLICE_PHYSICAL(cuMemCreate)(made.place(), bytes, &real, flags);
    if (result != CUDA_SUCCESS)
        return result;
    if (wish->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
        !handle_registry().add(as_handle(*made), HandleKind::physical_memory, wish->location.id, 0)) {
        CUSLICE_PHYSICAL(cuMemRelease)(*made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made.keep();
    return result;
}

CUSLICE_SPLIT(cuMemRelease, handle) {
    const CUresult result = CUSLICE_PHYSICAL(cuMemRelease)(handle);
    CUmemAllocationProp properties;
    // There may be more handles of it, which are the same number.
    if (result == CUDA_SUCCESS &&
        CUSLICE_PHYSICAL(cuMemGetAllocationPropertiesFromHandle)(&properties, handle) != CUDA_SUCCESS)
        handle_registry().remove(as_handle(handle), HandleKind::physical_memory);
    return result;
}

// A partition keeps its access when another one is given less, or none.
CUSLICE_SPLIT(cuMemSetAccess, address, bytes, wishes, count) {
    PhysicalAccess real(wishes, count);
    if (!real.complete())
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (CUmemAccessDesc& wish : real)
        if (names_parts(wish.location))
            keep_access(address, bytes, wish);
    return CUSLICE_PHYSICAL(cuMemSetAccess)(address, bytes, real.get(), wishes ? real.size() : count);
}

CUSLICE_SPLIT(cuMemGetAccess, flags, location, address) {
    if (!location)
        return CUSLICE_PHYSICAL(cuMemGetAccess)(flags, location, address);
    CUmemLocation real = *location;
    to_physical(real);
    return CUSLICE_PHYSICAL(cuMemGetAccess)(flags, &real, address);
}

CUSLICE_SPLIT(cuMemGetAllocationGranularity, granularity, wish, which) {
    if (!wish)
        return CUSLICE_PHYSICAL(cuMemGetAllocationGranularity)(granularity, wish, which);
    CUmemAllocationProp real = *wish;
    to_physical(real.location);
    return CUSLICE_PHYSICAL(cuMemGetAllocationGranularity)(granularity, &real, which);
}

CUSLICE_SPLIT(cuMemGetAllocationPropertiesFromHandle, properties, handle) {
    const CUresult result = CUSLICE_PHYSICAL(cuMemGetAllocationPropertiesFromHandle)(properties, handle);
    if (result != CUDA_SUCCESS || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return result;
    const HandleOwner owner = handle_registry().find(as_handle(handle), HandleKind::physical_memory);
    properties->location.id = owner.known ? owner.device : to_virtual(properties->location.id);
    return result;
}

CUSLICE_SPLIT_FORM(cuMemMapArrayAsync, map_tiles, tiles, count, stream)
CUSLICE_SPLIT_FORM(cuMemMapArrayAsync_ptsz, map_tiles, tiles, count, stream)

}  // namespace split_driver

}  // namespace cuslice
