#include "fake/driver/pool.h"

#include <algorithm>
#include <atomic>

#include "fake/driver/state.h"

namespace cuslice::fake {

constinit PoolTable pools;

namespace {

constinit std::atomic<bool> have_held{false};

/// Pools are numbered from the top, contexts from the bottom: both own blocks.
std::atomic<std::uint32_t> last_number{0xffffffff};

struct Chosen {
    CUmemoryPool standard = nullptr, current = nullptr;
};

Chosen& chosen(const Gpu& gpu) {
    static auto* all = new Chosen[64];
    return all[gpu.ordinal];
}

std::uint64_t in_chunks(std::uint64_t bytes, std::uint64_t chunk) { return (bytes + chunk - 1) / chunk * chunk; }

}  // namespace

Pool& new_pool(Gpu& gpu) {
    const auto [handle, pool] = pools.create();
    pool->handle = handle;
    pool->gpu = &gpu;
    pool->number = last_number--;
    return *pool;
}

Pool& default_pool(Gpu& gpu) {
    Chosen& mine = chosen(gpu);
    if (Pool* pool = pools.find(mine.standard)) return *pool;
    Pool* pool = &new_pool(gpu);
    pool->is_default = true;
    pool->props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    pool->props.location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu.ordinal};
    mine.standard = pool->handle;
    if (mine.current == nullptr) mine.current = pool->handle;
    return *pool;
}

Pool& current_pool(Gpu& gpu) {
    Pool& standard = default_pool(gpu);
    Pool* pool = pools.find(chosen(gpu).current);
    return pool != nullptr ? *pool : standard;
}

void set_current_pool(Gpu& gpu, CUmemoryPool pool) {
    default_pool(gpu);
    chosen(gpu).current = pool;
}

bool pools_have_held() { return have_held.load(std::memory_order_relaxed); }

CUresult allocate_pooled(Pool& pool, std::uint64_t bytes, Address& out) {
    Gpu& gpu = *pool.gpu;
    if (const CUresult bad = gpu.open(); bad != CUDA_SUCCESS) return bad;  // a default pool is there before any context
    if (bytes > gpu.capacity()) return CUDA_ERROR_OUT_OF_MEMORY;
    const std::uint64_t wanted = pool.used + rounded(bytes);
    const std::uint64_t most = pool.props.maxSize;
    if (most != 0 && wanted > most) return CUDA_ERROR_OUT_OF_MEMORY;
    const std::lock_guard hold(gpu.lock);
    if (wanted > pool.reserved) {
        const std::uint64_t growth = in_chunks(wanted, gpu.spec.pool_chunk) - pool.reserved;
        if (!gpu.charge_held(growth)) return CUDA_ERROR_OUT_OF_MEMORY;
        pool.reserved += growth;
        have_held.store(true, std::memory_order_relaxed);
        pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
    }
    const Block block = gpu.device.heap.allocate(bytes, BlockKind::Pool, pool.number);
    if (!block) return CUDA_ERROR_OUT_OF_MEMORY;
    pool.used = wanted;
    pool.used_high = std::max(pool.used_high, pool.used);
    out = block.base;
    return CUDA_SUCCESS;
}

CUresult free_pooled_now(Gpu& gpu, Address address) {
    const std::lock_guard hold(driver().lock);
    Pool* owner = nullptr;
    {
        const std::lock_guard hold_gpu(gpu.lock);
        const Block block = gpu.device.heap.at(address);
        if (!block || block.record->kind != BlockKind::Pool) return CUDA_ERROR_INVALID_VALUE;
        const std::uint32_t number = block.record->owner;
        pools.each([&](CUmemoryPool, Pool& pool) {
            if (pool.number == number) owner = &pool;
        });
        if (owner != nullptr) owner->used -= rounded(block.record->asked);
        gpu.free_block(gpu.device, block);
    }
    if (owner != nullptr && owner->doomed) destroy_pool(*owner);
    return CUDA_SUCCESS;
}

void trim_pool(Pool& pool, std::uint64_t keep) {
    Gpu& gpu = *pool.gpu;
    const std::uint64_t least = in_chunks(std::max(pool.used, keep), gpu.spec.pool_chunk);
    if (least >= pool.reserved) return;
    gpu.release(pool.reserved - least);
    pool.reserved = least;
}

void trim_to_thresholds(Gpu& gpu) {
    pools.each([&](CUmemoryPool, Pool& pool) {
        if (pool.gpu == &gpu) trim_pool(pool, std::min(pool.threshold, pool.reserved));
    });
}

void end_pools(Gpu& gpu) {
    pools.each([&](CUmemoryPool, Pool& pool) {
        if (pool.gpu != &gpu) return;
        {
            const std::lock_guard hold(gpu.lock);
            gpu.device.heap.each([&](const Block& block) {
                if (block.record->kind == BlockKind::Pool && block.record->owner == pool.number) {
                    gpu.free_block(gpu.device, block);
                }
            });
        }
        pool.used = 0;
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
    Chosen& mine = chosen(*pool.gpu);
    if (mine.current == pool.handle) mine.current = mine.standard;
    trim_pool(pool, 0);
    pools.destroy(pool.handle);
    return CUDA_SUCCESS;
}

}  // namespace cuslice::fake
