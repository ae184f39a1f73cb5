// SPDX-License-Identifier: Apache-2.0
// Stream-ordered memory: each virtual GPU has a default pool of its own, as a GPU has.
#include "policy/base/out_parameter.h"
#include "virtual_gpu/split/current_context.h"
#include "virtual_gpu/split/default_pools.h"
#include "virtual_gpu/split/functions.h"
#include "virtual_gpu/split/handle_registry.h"
#include "virtual_gpu/split/stream.h"
#include "virtual_gpu/split/translate.h"

namespace cuslice {

namespace {

bool is_on(CUmemoryPool pool, CUdevice physical) {
    CUmemLocation place{};
    place.type = CU_MEM_LOCATION_TYPE_DEVICE;
    place.id = physical;
    CUmemAccess_flags access{};
    return CUSLICE_PHYSICAL(cuMemPoolGetAccess)(&access, pool, &place) == CUDA_SUCCESS &&
           access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

// The part that a pool is of. Nothing says on which part another process has made one: it is the first one's of its GPU
// that is current when somebody asks.
HandleOwner owner_of(CUmemoryPool pool) {
    const HandleOwner owner = handle_registry().find(pool, HandleKind::pool);
    if (!owner.is_unclaimed())
        return owner;
    const int part = CurrentVirtual::device();
    const bool on_it = part >= 0 && (split().device(part)->physical | HandleOwner::kUnclaimed) == owner.device;
    return on_it ? handle_registry().claim(pool, part) : HandleOwner{};
}

// No other GPU has access to a pool that was just imported. False if the kernel gives no memory.
bool note_imported(CUmemoryPool pool) {
    for (const Split::Device& device : split().devices())
        if (is_on(pool, device.physical))
            return handle_registry().add(pool, HandleKind::pool, device.physical | HandleOwner::kUnclaimed, 0);
    return true;
}

CUresult choose(int ordinal, CUmemoryPool pool) {
    const HandleOwner owner = owner_of(pool);
    if (!owner.known || owner.device != ordinal)
        return CUDA_ERROR_INVALID_VALUE;
    choose_pool(ordinal, pool);
    return CUDA_SUCCESS;
}

bool names_gpu(const CUmemLocation* location, CUmemAllocationType type) {
    return split().is_open() && location && location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
           type == CU_MEM_ALLOCATION_TYPE_PINNED;
}

// Managed memory's pools are the physical GPU's: what is allocated from them is counted by itself.
bool names_managed(const CUmemLocation* location, CUmemAllocationType type) {
    return location && location->type == CU_MEM_LOCATION_TYPE_DEVICE && type == CU_MEM_ALLOCATION_TYPE_MANAGED;
}

// A function that names a pool by its place, with the place that the driver knows.
template <typename Call>
CUresult at_physical(CUmemLocation* location, CUmemAllocationType type, Call call) {
    if (!names_managed(location, type))
        return call(location);
    CUmemLocation real = *location;
    to_physical(real);
    return call(&real);
}

// Another part of the GPU that a pool is of.
bool is_sibling(const HandleOwner& owner, const CUmemLocation& location) {
    return owner.known && location.type == CU_MEM_LOCATION_TYPE_DEVICE && location.id != owner.device &&
           split().siblings(location.id, owner.device);
}

template <typename FromPool>
CUresult allocate(FromPool from_pool, CUdeviceptr* address, size_t bytes, CUstream stream) {
    const int ordinal = device_of(stream);
    CUmemoryPool pool = nullptr;
    if (ordinal < 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!address)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = chosen_pool_of(ordinal, &pool);
    return result == CUDA_SUCCESS ? from_pool(address, bytes, pool, stream) : result;
}

}  // namespace

namespace split_driver {

CUSLICE_SPLIT(cuDeviceGetDefaultMemPool, pool, ordinal) {
    if (!split().is_open() || !pool)
        return CUSLICE_PHYSICAL(cuDeviceGetDefaultMemPool)(pool, ordinal);
    if (!split().device(ordinal))
        return CUSLICE_PHYSICAL(cuDeviceGetDefaultMemPool)(pool, CU_DEVICE_INVALID);
    return preset_pool_of(ordinal, pool);
}

CUSLICE_SPLIT(cuDeviceGetMemPool, pool, ordinal) {
    if (!split().is_open() || !pool)
        return CUSLICE_PHYSICAL(cuDeviceGetMemPool)(pool, ordinal);
    return split().device(ordinal) ? chosen_pool_of(ordinal, pool) : CUDA_ERROR_INVALID_DEVICE;
}

CUSLICE_SPLIT(cuDeviceSetMemPool, ordinal, pool) {
    if (!split().is_open())
        return CUSLICE_PHYSICAL(cuDeviceSetMemPool)(ordinal, pool);
    return split().device(ordinal) ? choose(ordinal, pool) : CUDA_ERROR_INVALID_DEVICE;
}

CUSLICE_SPLIT(cuMemGetDefaultMemPool, pool, location, type) {
    if (names_gpu(location, type))
        return split_driver::cuDeviceGetDefaultMemPool(pool, location->id);
    return at_physical(location, type,
                       [&](CUmemLocation* real) { return CUSLICE_PHYSICAL(cuMemGetDefaultMemPool)(pool, real, type); });
}

CUSLICE_SPLIT(cuMemGetMemPool, pool, location, type) {
    if (names_gpu(location, type))
        return split_driver::cuDeviceGetMemPool(pool, location->id);
    return at_physical(location, type,
                       [&](CUmemLocation* real) { return CUSLICE_PHYSICAL(cuMemGetMemPool)(pool, real, type); });
}

CUSLICE_SPLIT(cuMemSetMemPool, location, type, pool) {
    if (names_gpu(location, type))
        return split_driver::cuDeviceSetMemPool(location->id, pool);
    return at_physical(location, type,
                       [&](CUmemLocation* real) { return CUSLICE_PHYSICAL(cuMemSetMemPool)(real, type, pool); });
}

CUSLICE_SPLIT(cuMemPoolCreate, pool, wish) {
    if (!wish)
        return CUSLICE_PHYSICAL(cuMemPoolCreate)(pool, wish);
    CUmemPoolProps real = *wish;
    to_physical(real.location);
    OutParameter<CUmemoryPool> made(pool);
    const CUresult result = CUSLICE_PHYSICAL(cuMemPoolCreate)(made.place(), &real);
    if (result != CUDA_SUCCESS)
        return result;
    if (wish->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
        !handle_registry().add(*made, HandleKind::pool, wish->location.id, 0)) {
        CUSLICE_PHYSICAL(cuMemPoolDestroy)(*made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made.keep();
    return result;
}

CUSLICE_SPLIT(cuMemPoolImportFromShareableHandle, pool, handle, type, flags) {
    OutParameter<CUmemoryPool> made(pool);
    const CUresult result = CUSLICE_PHYSICAL(cuMemPoolImportFromShareableHandle)(made.place(), handle, type, flags);
    if (result != CUDA_SUCCESS)
        return result;
    if (!note_imported(*made)) {
        CUSLICE_PHYSICAL(cuMemPoolDestroy)(*made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    owner_of(*made);
    made.keep();
    return result;
}

CUSLICE_SPLIT(cuMemPoolDestroy, pool) {
    if (is_preset_pool(pool))
        return CUDA_ERROR_INVALID_VALUE;
    const HandleOwner owner = handle_registry().find(pool, HandleKind::pool);
    handle_registry().remove(pool, HandleKind::pool);
    const CUresult result = CUSLICE_PHYSICAL(cuMemPoolDestroy)(pool);
    if (!owner.known)
        return result;
    if (result != CUDA_SUCCESS) {
        handle_registry().add(pool, HandleKind::pool, owner.device, 0, owner.access);
        return result;
    }
    if (owner.is_unclaimed())
        return result;
    unchoose_pool(owner.device, pool);
    return result;
}

// A part of the pool's own GPU reaches it already, and is told what it was given. The driver is asked for the others.
CUSLICE_SPLIT(cuMemPoolSetAccess, pool, wishes, count) {
    const HandleOwner owner = owner_of(pool);
    for (size_t i = 0; wishes && i < count; i++) {
        CUmemAccessDesc wish = wishes[i];
        if (is_sibling(owner, wish.location)) {
            handle_registry().set_access(pool, wish.location.id, wish.flags & CU_MEM_ACCESS_FLAGS_PROT_READ,
                                         wish.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
            continue;
        }
        to_physical(wish.location);
        const CUresult result = CUSLICE_PHYSICAL(cuMemPoolSetAccess)(pool, &wish, 1);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return wishes && count ? CUDA_SUCCESS : CUSLICE_PHYSICAL(cuMemPoolSetAccess)(pool, wishes, count);
}

CUSLICE_SPLIT(cuMemPoolGetAccess, flags, pool, location) {
    if (!location)
        return CUSLICE_PHYSICAL(cuMemPoolGetAccess)(flags, pool, location);
    const HandleOwner owner = owner_of(pool);
    if (flags && is_sibling(owner, *location)) {
        const uint64_t bit = 1ull << location->id;
        *flags = owner.access.writes & bit  ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                 : owner.access.reads & bit ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                            : CU_MEM_ACCESS_FLAGS_PROT_NONE;
        return CUDA_SUCCESS;
    }
    CUmemLocation real = *location;
    to_physical(real);
    return CUSLICE_PHYSICAL(cuMemPoolGetAccess)(flags, pool, &real);
}

CUSLICE_SPLIT(cuMemAllocAsync, address, bytes, stream) {
    return allocate(CUSLICE_PHYSICAL(cuMemAllocFromPoolAsync), address, bytes, stream);
}

CUSLICE_SPLIT(cuMemAllocAsync_ptsz, address, bytes, stream) {
    return allocate(CUSLICE_PHYSICAL(cuMemAllocFromPoolAsync_ptsz), address, bytes, stream);
}

}  // namespace split_driver

}  // namespace cuslice
