#include "virtual_gpu/memory_pools.h"

#include "virtual_gpu/driver/table.h"

namespace cuslice {

constinit thread_local MemoryPools::Growing* MemoryPools::Growing::here_ = nullptr;

namespace {

std::uint64_t up_to_steps(std::uint64_t bytes, std::uint64_t step) {
    std::uint64_t up = 0;
    return __builtin_add_overflow(bytes, step - 1, &up) ? bytes : up / step * step;
}

}  // namespace

bool MemoryPools::read(CUmemoryPool pool, CUmemPool_attribute attribute, std::uint64_t* bytes) const {
    cuuint64_t value = 0;
    const bool reserved = attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
    const CUresult result =
        pool == kGraphs
            ? CUSLICE_REAL(cuDeviceGetGraphMemAttribute)(
                  device_, reserved ? CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT : CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT,
                  &value)
            : CUSLICE_REAL(cuMemPoolGetAttribute)(pool, attribute, &value);
    if (result != CUDA_SUCCESS) return false;
    *bytes = value;
    return true;
}

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

MemoryPools::Pool* MemoryPools::find_or_add(CUmemoryPool handle) {
    if (Pool* pool = find(handle)) return pool;
    return pools_.push_back({handle, 0, kBelievedStep}) ? pools_.end() - 1 : nullptr;
}

std::uint64_t MemoryPools::growth_at_most(CUmemoryPool handle, std::uint64_t bytes) {
    LockGuard lock(mutex_);
    const Pool* pool = find(handle);
    return up_to_steps(Budget::charged(bytes), pool ? pool->step : kBelievedStep);
}

bool MemoryPools::has_spare(CUmemoryPool handle, std::uint64_t bytes) const {
    std::uint64_t kept = 0, used = 0;
    return reserved_by(handle, &kept) && read(handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) && kept >= used &&
           kept - used >= bytes;
}

void MemoryPools::allocated(CUmemoryPool handle, std::uint64_t bytes, std::uint64_t reserved, Budget& budget) {
    LockGuard lock(mutex_);
    Pool* pool = find_or_add(handle);
    if (!pool) {  // no memory for one more entry: what was reserved stays charged, too much rather than too little
        budget.commit();
        return;
    }
    const std::uint64_t before = pool->charged;
    std::uint64_t now = 0;
    charge(*pool, reserved_by(handle, &now) ? now : before + reserved, budget);
    budget.end_release(reserved);  // only now, so that the total never dips below the truth

    const std::uint64_t grown = now > before ? now - before : 0;
    if (grown > up_to_steps(bytes, pool->step))
        pool->step = up_to_steps(grown - bytes, kBelievedStep);  // by more than was believed possible
    else if (grown && grown < pool->step)
        pool->step = grown;
}

void MemoryPools::refresh(Budget& budget, bool trim) {
    LockGuard lock(mutex_);
    for (Pool& pool : pools_) {
        if (trim && pool.handle == kGraphs) CUSLICE_REAL(cuDeviceGraphMemTrim)(device_);
        if (trim && pool.handle != kGraphs) CUSLICE_REAL(cuMemPoolTrimTo)(pool.handle, 0);
        std::uint64_t now = 0;
        if (reserved_by(pool.handle, &now)) charge(pool, now, budget);
    }
}

void MemoryPools::created(CUmemoryPool handle) {
    LockGuard lock(mutex_);
    find_or_add(handle);
}

bool MemoryPools::knows(CUmemoryPool handle) {
    LockGuard lock(mutex_);
    return find(handle) != nullptr;
}

bool MemoryPools::has_allocations(CUmemoryPool handle) const {
    std::uint64_t used = 0;
    return read(handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) && used != 0;
}

std::uint64_t MemoryPools::destroyed(CUmemoryPool handle) {
    LockGuard lock(mutex_);
    Pool* pool = find(handle);
    if (!pool) return 0;
    const std::uint64_t charged = pool->charged;
    total_.fetch_sub(charged, std::memory_order_relaxed);
    pools_.remove_at(static_cast<std::size_t>(pool - pools_.begin()));
    return charged;
}

// The thread that forks may be the one that is growing a pool: some drivers start a program of their own. It does not
// wait for itself.
void MemoryPools::lock_growing() {
    if (!Growing::here(*this)) growing_.lock();
}
void MemoryPools::unlock_all() {
    mutex_.unlock();
    if (!Growing::here(*this)) growing_.unlock();
}

}  // namespace cuslice
