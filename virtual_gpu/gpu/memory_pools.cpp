// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/memory_pools.h"

#include <algorithm>

#include "virtual_gpu/driver/table.h"
#include "virtual_gpu/gpu/relaxed_captures.h"

namespace cuslice {

namespace {

uint64_t up_to_steps(uint64_t bytes, uint64_t step) {
    uint64_t up = 0;
    return __builtin_add_overflow(bytes, step - 1, &up) ? bytes : up / step * step;
}

// The allocation that this thread is inside the driver for, where a longjmp leaves it.
struct LeftBehind {
    MemoryPools* pools = nullptr;
    MemoryPools::Inside inside;
};
constinit thread_local LeftBehind left_behind;

}  // namespace

inline CUresult MemoryPools::read(CUmemoryPool pool, CUmemPool_attribute attribute, uint64_t* bytes) const {
    cuuint64_t value = 0;
    const RelaxedCaptures relaxed;
    const bool reserved = attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
    const CUresult result =
        pool == kGraphs
            ? CUSLICE_REAL(cuDeviceGetGraphMemAttribute)(
                  device_, reserved ? CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT : CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT,
                  &value)
            : CUSLICE_REAL(cuMemPoolGetAttribute)(pool, attribute, &value);
    if (result == CUDA_SUCCESS)
        *bytes = value;
    return result;
}

inline MemoryPools::Pool* MemoryPools::find(CUmemoryPool handle) {
    for (Pool& pool : pools_)
        if (pool.handle == handle)
            return &pool;
    return nullptr;
}

void MemoryPools::charge(Pool& pool, uint64_t bytes, Budget& budget) {
    if (bytes == pool.charged)
        return;  // as mostly
    budget.adjust(pool.charged, bytes);
    total_.fetch_add(bytes - pool.charged, std::memory_order_relaxed);
    pool.charged = bytes;
}

// False if it can't be had, or one that began later has been charged.
bool MemoryPools::charge(Pool& pool, const Reading& reading, Budget& budget) {
    if (!note(pool, reading))
        return false;
    charge(pool, reading.bytes, budget);
    return true;
}

bool MemoryPools::note(Pool& pool, const Reading& reading) {
    if (!reading.known || reading.number < pool.read)
        return false;
    pool.read = reading.number;
    pool.told = true;
    return true;
}

// The reservation for it ends in the same step, so that the total never dips below the truth, nor is twice that.
[[gnu::noinline]] void MemoryPools::become(Pool& pool, uint64_t bytes, uint64_t reserved, Budget& budget) {
    budget.become(reserved, pool.charged, bytes);
    total_.fetch_add(bytes - pool.charged, std::memory_order_relaxed);
    pool.charged = bytes;
}

inline MemoryPools::Reading MemoryPools::read_reserved(CUmemoryPool handle) {
    Reading reading;
    reading.number = readings_.fetch_add(1, std::memory_order_acq_rel) + 1;
    const CUresult result = read(handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reading.bytes);
    reading.known = result == CUDA_SUCCESS;
    reading.gone = handle != kGraphs && (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_INVALID_HANDLE);
    return reading;
}

inline MemoryPools::Pool* MemoryPools::find_or_add(CUmemoryPool handle) {
    Pool* pool = find(handle);
    return pool ? pool : add(handle);
}

[[gnu::cold, gnu::noinline]] MemoryPools::Pool* MemoryPools::add(CUmemoryPool handle) {
    Pool pool{};
    pool.handle = handle;
    pool.step = kBelievedStep;
    return pools_.push_back(pool) ? pools_.end() - 1 : nullptr;
}

MemoryPools::Growing::Growing(MemoryPools& pools, CUmemoryPool handle, uint64_t bytes)
    : pools_(pools), pool_(handle), bytes_(Budget::charged(bytes)) {
    LockGuard lock(pools.mutex_);
    Pool* pool = pools.find_or_add(handle);
    at_most_ = up_to_steps(bytes_, pool ? pool->step : kBelievedStep);
    if (pool && !pool->on_spare)
        pools.begin(pool, *this, Where::reserved);
}

// With the lock held. Where a pool can't be written down, its allocations rely on their reservations alone.
bool MemoryPools::begin(Pool* pool, Growing& growing, Growing::Where where) {
    if (!pool)
        return where == Growing::Where::reserved;
    pool->inside++;
    pool->asked += growing.bytes_;
    pool->at_most += growing.at_most_;
    pool->on_spare += where == Growing::Where::on_spare;
    growing.where_ = where;
    left_behind = {this, growing.inside()};
    return true;
}

bool MemoryPools::Growing::enter_now() {
    LockGuard lock(pools_.mutex_);
    Pool* pool = pools_.find(pool_);
    return (!pool || !pool->on_spare) && pools_.begin(pool, *this, Where::reserved);
}

void MemoryPools::Growing::enter_when_free() {
    for (;;) {
        const uint32_t seen = pools_.ended_.now();
        if (enter())
            return;
        pools_.ended_.wait(seen);
    }
}

// The pool's figure may not show yet what the others inside have asked for, and they may take spare memory although
// they needn't: all their requests have to fit, too. Later allocations keep out.
bool MemoryPools::Growing::enter_on_spare(bool wait) {
    constexpr int kPatience = 64;
    leave();
    for (int waits = wait ? kPatience : 0;;) {
        const uint32_t seen = pools_.ended_.now();
        uint64_t ended = 0, kept = 0, used = 0;
        {
            LockGuard lock(pools_.mutex_);
            const Pool* pool = pools_.find(pool_);
            if (!pool)
                return false;
            ended = pool->ended;
        }
        if (pools_.read(pool_, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) != CUDA_SUCCESS ||
            pools_.read(pool_, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &kept) != CUDA_SUCCESS || kept < used ||
            kept - used < bytes_)
            return false;
        {
            LockGuard lock(pools_.mutex_);
            Pool* pool = pools_.find(pool_);
            if (!pool)
                return false;
            if (pool->ended != ended)
                continue;  // what that one took may not be in the figure
            if (pool->asked <= kept - used - bytes_)
                return pools_.begin(pool, *this, Where::on_spare);
        }
        if (waits-- == 0)
            return false;
        pools_.ended_.wait(seen);
    }
}

// With the lock held: this thread has come out of the driver.
void MemoryPools::come_out(Pool* pool, const Inside& ended) {
    left_behind = {};
    if (!pool || !pool->inside)
        return;  // or in a child that the driver has forked here
    pool->inside--;
    pool->asked -= ended.bytes;
    pool->at_most -= ended.at_most;
    pool->on_spare -= ended.on_spare;
    pool->ended++;
}

// With the lock held.
void MemoryPools::Growing::end(Pool* pool) {
    if (where_ != Where::outside)
        pools_.come_out(pool, inside());
    where_ = Where::outside;
}

void MemoryPools::Growing::leave() {
    if (where_ == Where::outside)
        return;
    {
        LockGuard lock(pools_.mutex_);
        end(pools_.find(pool_));
    }
    pools_.ended_.happened();
}

void MemoryPools::leave() {
    if (left_behind.pools != this)
        return;
    {
        LockGuard lock(mutex_);
        const Inside inside = left_behind.inside;
        come_out(find(inside.pool), inside);
    }
    ended_.happened();
}

void MemoryPools::Growing::allocated(uint64_t reserved, Budget& budget) {
    const Reading now = pools_.read_reserved(pool_);
    {
        LockGuard lock(pools_.mutex_);
        Pool* pool = pools_.find_or_add(pool_);
        end(pool);
        if (!pool) {  // no memory for one more entry: what was reserved stays charged, rather too much than too little
            budget.commit();
        } else {
            const uint64_t before = pool->charged;
            const bool charged = pools_.note(*pool, now);
            if (!now.known)
                pool->read = std::max(pool->read, now.number);
            const uint64_t unread = now.known ? before : before + reserved, after = charged ? now.bytes : unread;
            if (after == before) [[likely]]
                budget.roll_back(reserved);
            else
                pools_.become(*pool, after, reserved, budget);

            // All that was not charged yet is this one's, and of those inside.
            const uint64_t grown = charged && now.bytes > before ? now.bytes - before : 0;
            if (grown > pool->at_most + up_to_steps(bytes_, pool->step))
                pool->step = up_to_steps(grown - pool->at_most - bytes_, kBelievedStep);  // more than was believed
            else if (grown && grown < pool->step)
                pool->step = grown;
        }
    }
    pools_.ended_.happened();
}

void MemoryPools::await_growth() {
    uint32_t seen = ended_.now();
    uint64_t inside = 0;
    {
        LockGuard lock(mutex_);
        for (const Pool& pool : pools_)
            inside += pool.inside;
    }
    for (; inside; inside--) {
        {
            LockGuard lock(mutex_);
            bool any = false;
            for (const Pool& pool : pools_)
                any = any || pool.inside;
            if (!any)
                return;
        }
        ended_.wait(seen);
        seen = ended_.now();
    }
}

// Without the lock while the driver is asked. A pool that comes or goes meanwhile may be passed over.
void MemoryPools::refresh(Budget& budget, bool trim) {
    for (size_t i = 0;; i++) {
        CUmemoryPool handle = nullptr;
        bool may_trim = trim;
        {
            LockGuard lock(mutex_);
            if (i >= pools_.size())
                return;
            handle = pools_[i].handle;
            may_trim = trim && !pools_[i].on_spare;
        }
        if (may_trim) {
            const RelaxedCaptures relaxed;
            handle == kGraphs ? CUSLICE_REAL(cuDeviceGraphMemTrim)(device_) : CUSLICE_REAL(cuMemPoolTrimTo)(handle, 0);
        }
        const Reading now = read_reserved(handle);
        LockGuard lock(mutex_);
        Pool* pool = find(handle);
        if (!pool)
            continue;
        charge(*pool, now, budget);
        // It ended with the last context of its GPU, and what it had in reserve with it.
        if (!now.gone || !pool->told || pool->inside || now.number < pool->read)
            continue;
        charge(*pool, 0, budget);
        pools_.remove_at(static_cast<size_t>(pool - pools_.begin()));
        i--;
    }
}

void MemoryPools::forget() {
    LockGuard lock(mutex_);
    for (Pool& pool : pools_)
        pool.inside = pool.asked = pool.at_most = pool.on_spare = 0;
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
    uint64_t used = 0;
    return read(handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) == CUDA_SUCCESS && used != 0;
}

uint64_t MemoryPools::destroyed(CUmemoryPool handle) {
    LockGuard lock(mutex_);
    Pool* pool = find(handle);
    if (!pool)
        return 0;
    const uint64_t charged = pool->charged;
    total_.fetch_sub(charged, std::memory_order_relaxed);
    pools_.remove_at(static_cast<size_t>(pool - pools_.begin()));
    return charged;
}

}  // namespace cuslice
