#include "virtual_gpu/memory_pools.h"

#include "virtual_gpu/driver/table.h"

namespace cuslice {

namespace {

bool reserved_by(CUmemoryPool pool, std::uint64_t* bytes) {
    cuuint64_t value = 0;
    if (CUSLICE_REAL(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value) != CUDA_SUCCESS)
        return false;
    *bytes = value;
    return true;
}

}  // namespace

MemoryPools::Pool* MemoryPools::find(CUmemoryPool handle) {
    for (Pool& pool : pools_)
        if (pool.handle == handle) return &pool;
    return nullptr;
}

void MemoryPools::charge(Pool& pool, std::uint64_t bytes, Budget& budget) {
    budget.adjust(pool.charged, bytes);
    total_.fetch_add(bytes - pool.charged, std::memory_order_relaxed);
    pool.charged = bytes;
}

void MemoryPools::allocated(CUmemoryPool handle, std::uint64_t reserved, Budget& budget) {
    LockGuard lock(mutex_);
    Pool* pool = find(handle);
    if (!pool && pools_.push_back({handle, 0})) pool = pools_.end() - 1;
    std::uint64_t now = 0;
    if (!pool) {  // no memory for one more entry: what was reserved stays charged, too much rather than too little
        budget.commit();
        return;
    }
    charge(*pool, reserved_by(handle, &now) ? now : pool->charged + reserved, budget);
    budget.end_release(reserved);  // only now, so that the total never dips below the truth
}

void MemoryPools::refresh(Budget& budget, bool trim) {
    LockGuard lock(mutex_);
    for (Pool& pool : pools_) {
        if (trim) CUSLICE_REAL(cuMemPoolTrimTo)(pool.handle, 0);
        std::uint64_t now = 0;
        if (reserved_by(pool.handle, &now)) charge(pool, now, budget);
    }
}

void MemoryPools::created(CUmemoryPool handle) {
    LockGuard lock(mutex_);
    if (!find(handle)) pools_.push_back({handle, 0});
}

bool MemoryPools::knows(CUmemoryPool handle) {
    LockGuard lock(mutex_);
    return find(handle) != nullptr;
}

void MemoryPools::destroyed(CUmemoryPool handle, Budget& budget) {
    LockGuard lock(mutex_);
    Pool* pool = find(handle);
    if (!pool) return;
    charge(*pool, 0, budget);
    pools_.remove_at(static_cast<std::size_t>(pool - pools_.begin()));
}

}  // namespace cuslice
