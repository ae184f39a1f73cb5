// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/pool.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <tuple>

#include "fake/driver/addresses.h"
#include "fake/driver/host_memory.h"
#include "fake/driver/state.h"
#include "fake/spec/machine.h"

namespace cuslice::fake {

namespace {

constinit std::atomic<bool> have_held{false};

/// Pools are numbered from the top, contexts from the bottom: both own blocks.
std::atomic<uint32_t> last_number{0xffffffff};

struct Chosen {
    CUmemoryPool standard = nullptr, current = nullptr;
};

CUmemLocation place_of(const Gpu& gpu) { return {CU_MEM_LOCATION_TYPE_DEVICE, gpu.ordinal}; }

Chosen& chosen(const CUmemLocation& place, CUmemAllocationType type, const Gpu* gpu) {
    static auto* devices = new Chosen[64];
    static auto* elsewhere = new std::map<std::tuple<int, int, int>, Chosen>;
    if (gpu != nullptr && type == CU_MEM_ALLOCATION_TYPE_PINNED)
        return devices[gpu->ordinal];
    return (*elsewhere)[{place.type, place.id, type}];
}

Chosen& chosen(const Pool& pool) { return chosen(pool.props.location, pool.props.allocType, pool.gpu); }

bool is_pool_block(const BlockRecord& record) {
    return record.kind == BlockKind::Pool || (record.kind == BlockKind::Managed && is_pool_number(record.owner));
}

void note_used(Pool& pool, uint64_t used) {
    pool.used = used;
    pool.used_high = std::max(pool.used_high, used);
}

/// For a pool whose memory is taken block by block.
void note_taken(Pool& pool, uint64_t bytes) {
    note_used(pool, pool.used + rounded(bytes));
    pool.reserved = pool.used;
    pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
}

CUresult allocate_managed(Pool& pool, Gpu& gpu, uint64_t bytes, Address& out) {
    CUSLICE_TRY(gpu.open());
    CUSLICE_TRY(gpu.open_region(gpu.managed));
    CUSLICE_TRY(gpu.allocate(gpu.managed, bytes, BlockKind::Managed, pool.number, out));
    note_taken(pool, bytes);
    return CUDA_SUCCESS;
}

CUresult allocate_on_host(Pool& pool, uint64_t bytes, Address& out) {
    void* memory = nullptr;
    CUSLICE_TRY(allocate_host_for(pool.number, bytes, &memory));
    note_taken(pool, bytes);
    out = reinterpret_cast<Address>(memory);
    return CUDA_SUCCESS;
}

/// A block's size has gone back to its pool.
void note_freed(Pool* pool, uint64_t bytes) {
    if (pool == nullptr)
        return;
    pool->used -= rounded(bytes);
    if (!pool->of_device())
        pool->reserved = pool->used;
    if (pool->doomed)
        destroy_pool(*pool);
}

}  // namespace

Pool& new_pool(Gpu* gpu) {
    const auto [handle, pool] = pools.create();
    pool->handle = handle;
    pool->gpu = gpu;
    pool->number = last_number--;
    return *pool;
}

Pool* pool_numbered(uint32_t number) {
    Pool* found = nullptr;
    pools.each([&](CUmemoryPool, Pool& pool) {
        if (pool.number == number)
            found = &pool;
    });
    return found;
}

CUresult find_place(CUmemLocation& place, CUmemAllocationType type, Gpu*& gpu) {
    const bool is_managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED;
    if (!is_managed && type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    gpu = nullptr;
    // Older drivers knew devices' own memory alone, as far as is known here.
    const bool usual = !is_managed && place.type == CU_MEM_LOCATION_TYPE_DEVICE;
    if (!usual && driver_spec().cuda_version() < 13000)
        return CUDA_ERROR_INVALID_VALUE;
    switch (static_cast<int>(place.type)) {
        case CU_MEM_LOCATION_TYPE_DEVICE:
            return find_gpu(place.id, gpu);
        case CU_MEM_LOCATION_TYPE_HOST:
            place.id = 0;
            return CUDA_SUCCESS;
        case CU_MEM_LOCATION_TYPE_HOST_NUMA:  // a machine has one node
            return place.id == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        case CU_MEM_LOCATION_TYPE_NONE:
            place.id = 0;
            return is_managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

Pool& default_pool(const CUmemLocation& place, CUmemAllocationType type, Gpu* gpu) {
    Chosen& mine = chosen(place, type, gpu);
    if (Pool* pool = pools.find(mine.standard))
        return *pool;
    Pool* pool = &new_pool(gpu);
    pool->is_default = true;
    pool->props.allocType = type;
    pool->props.location = place;
    mine.standard = pool->handle;
    if (mine.current == nullptr)
        mine.current = pool->handle;
    return *pool;
}

Pool& current_pool(const CUmemLocation& place, CUmemAllocationType type, Gpu* gpu) {
    Pool& standard = default_pool(place, type, gpu);
    Pool* pool = pools.find(chosen(place, type, gpu).current);
    return pool != nullptr ? *pool : standard;
}

Pool& default_pool(Gpu& gpu) { return default_pool(place_of(gpu), CU_MEM_ALLOCATION_TYPE_PINNED, &gpu); }

Pool& current_pool(Gpu& gpu) { return current_pool(place_of(gpu), CU_MEM_ALLOCATION_TYPE_PINNED, &gpu); }

void set_current_pool(const Pool& pool) {
    default_pool(pool.props.location, pool.props.allocType, pool.gpu);
    chosen(pool).current = pool.handle;
}

bool pools_have_held() { return have_held.load(std::memory_order_relaxed); }

CUresult allocate_pooled(Pool& pool, Gpu& near, uint64_t bytes, Address& out) {
    if (bytes > uint64_t{1} << 46)
        return CUDA_ERROR_OUT_OF_MEMORY;
    const uint64_t wanted = pool.used + rounded(bytes);
    const uint64_t most = pool.props.maxSize;
    if (most != 0 && wanted > most)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (pool.managed())
        return allocate_managed(pool, pool.gpu != nullptr ? *pool.gpu : near, bytes, out);
    if (pool.gpu == nullptr)
        return allocate_on_host(pool, bytes, out);
    Gpu& gpu = *pool.gpu;
    CUSLICE_TRY(gpu.open());  // a default pool is there before any context
    if (bytes > gpu.capacity())
        return CUDA_ERROR_OUT_OF_MEMORY;
    const std::lock_guard hold(gpu.lock);
    if (wanted > pool.reserved) {
        const uint64_t growth = round_up(wanted, gpu.spec.pool_chunk) - pool.reserved;
        if (!gpu.charge_held(growth))
            return CUDA_ERROR_OUT_OF_MEMORY;
        pool.reserved += growth;
        have_held.store(true, std::memory_order_relaxed);
        pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
    }
    const Block block = gpu.device.heap.allocate(bytes, BlockKind::Pool, pool.number);
    if (!block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    note_used(pool, wanted);
    out = block.base;
    return CUDA_SUCCESS;
}

bool is_pooled(Address address) {
    HostBlock host;
    if (find_host_block(address, host))
        return host.pool != 0 && host.base == address;
    const Found found = find_block(address);
    return found && found.base == address && is_pool_block(found.record);
}

CUresult free_pooled_now(Address address) {
    const DriverLock hold;
    HostBlock host;
    if (free_host_of_pool(address, host)) {
        note_freed(pool_numbered(host.pool), host.size);
        return CUDA_SUCCESS;
    }
    const Found found = find_block(address);
    if (!found)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t bytes = 0;
    uint32_t number = 0;
    {
        const std::lock_guard hold_gpu(found.gpu->lock);
        const Block block = found.region->heap.at(address);  // again: another thread may have freed it
        if (!block || !is_pool_block(*block.record))
            return CUDA_ERROR_INVALID_VALUE;
        bytes = block.record->asked;
        number = block.record->owner;
        found.gpu->free_block(*found.region, block);
    }
    note_freed(pool_numbered(number), bytes);
    return CUDA_SUCCESS;
}

void trim_pool(Pool& pool, uint64_t keep) {
    if (!pool.of_device())
        return;  // nothing is kept there
    Gpu& gpu = *pool.gpu;
    const uint64_t least = round_up(std::max(pool.used, keep), gpu.spec.pool_chunk);
    if (least >= pool.reserved)
        return;
    gpu.release(pool.reserved - least);
    pool.reserved = least;
}

void trim_to_thresholds(Gpu& gpu) {
    pools.each([&](CUmemoryPool, Pool& pool) {
        if (pool.gpu == &gpu)
            trim_pool(pool, std::min(pool.threshold, pool.reserved));
    });
}

void end_pools(Gpu& gpu) {
    pools.each([&](CUmemoryPool, Pool& pool) {
        if (pool.gpu != &gpu)
            return;
        {
            const std::lock_guard hold(gpu.lock);
            Region& region = pool.managed() ? gpu.managed : gpu.device;
            region.heap.each([&](const Block& block) {
                if (is_pool_block(*block.record) && block.record->owner == pool.number)
                    gpu.free_block(region, block);
            });
        }
        pool.used = 0;
        if (pool.managed())
            pool.reserved = 0;
        pool.threshold = 0;
        if (pool.is_default) {
            trim_pool(pool, 0);
        } else {
            destroy_pool(pool);
        }
    });
}

CUresult destroy_pool(Pool& pool) {
    if (pool.used > 0) {
        pool.doomed = true;
        return CUDA_SUCCESS;
    }
    Chosen& mine = chosen(pool);
    if (mine.current == pool.handle)
        mine.current = mine.standard;
    trim_pool(pool, 0);
    pools.destroy(pool.handle);
    return CUDA_SUCCESS;
}

}  // namespace cuslice::fake
