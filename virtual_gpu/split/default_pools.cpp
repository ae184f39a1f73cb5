// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/split/default_pools.h"

#include "policy/base/mutex.h"
#include "virtual_gpu/split/handle_registry.h"
#include "virtual_gpu/split/physical.h"
#include "virtual_gpu/split/split.h"

namespace cuslice {

namespace {

struct Pools {
    CUmemoryPool preset = nullptr;
    CUmemoryPool chosen = nullptr;  // null: the preset one
};

// Over both arrays' contents. The driver is called with it held: two threads that ask first are to get one pool.
constinit Mutex pools_mutex{LockRank::virtual_pools};
constinit Pools pools_of[VirtualParts::kMax] CUSLICE_GUARDED_BY(pools_mutex);

// With the lock held.
CUresult preset_of(int ordinal, CUmemoryPool* pool) CUSLICE_REQUIRES(pools_mutex) {
    Pools& pools = pools_of[ordinal];
    if (!pools.preset) {
        CUmemPoolProps properties{};
        properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, split().device(ordinal)->physical};
        const CUresult result = CUSLICE_PHYSICAL(cuMemPoolCreate)(&pools.preset, &properties);
        if (result != CUDA_SUCCESS)
            return result;
        handle_registry().add(pools.preset, HandleKind::pool, ordinal, 0);
    }
    *pool = pools.preset;
    return CUDA_SUCCESS;
}

}  // namespace

CUresult preset_pool_of(int ordinal, CUmemoryPool* pool) {
    DisablingLockGuard lock(pools_mutex);
    return preset_of(ordinal, pool);
}

bool is_preset_pool(CUmemoryPool pool) {
    DisablingLockGuard lock(pools_mutex);
    for (const Pools& pools : pools_of)
        if (pool && pools.preset == pool)
            return true;
    return false;
}

CUresult chosen_pool_of(int ordinal, CUmemoryPool* pool) {
    DisablingLockGuard lock(pools_mutex);
    if (!pools_of[ordinal].chosen)
        return preset_of(ordinal, pool);
    *pool = pools_of[ordinal].chosen;
    return CUDA_SUCCESS;
}

void choose_pool(int ordinal, CUmemoryPool pool) {
    DisablingLockGuard lock(pools_mutex);
    pools_of[ordinal].chosen = pool;
}

void unchoose_pool(int ordinal, CUmemoryPool pool) {
    DisablingLockGuard lock(pools_mutex);
    if (pools_of[ordinal].chosen == pool)
        pools_of[ordinal].chosen = nullptr;
}

void forget_pools_of(CUdevice physical) {
    DisablingLockGuard lock(pools_mutex);
    Pools* pools = pools_of;
    for (const Split::Device& device : split().devices()) {
        Pools& its = *pools++;
        if (device.physical != physical)
            continue;
        if (its.preset)
            handle_registry().remove(its.preset, HandleKind::pool);
        its = {};
    }
}

void forget_pools_if_ended(CUdevice physical) {
    unsigned flags = 0;
    int active = 0;
    if (CUSLICE_PHYSICAL(cuDevicePrimaryCtxGetState)(physical, &flags, &active) == CUDA_SUCCESS && !active)
        forget_pools_of(physical);
}

}  // namespace cuslice
