#pragma once
#include <cstdint>

#include "policy/budget.h"
#include "policy/mutex.h"
#include "policy/page_vector.h"
#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice {

// The stream-ordered memory pools on one GPU. What counts is not what a program asked of a pool but what the pool keeps
// from the driver (CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT): freed memory stays there until a synchronisation, or longer.
// That figure is read after each allocation; between two readings it only falls, so the charge is never too low.
class MemoryPools {
  public:
    // After an allocation from `pool` succeeded for which `reserved` bytes were taken from the budget and are in
    // flight: the charge becomes the pool's own figure, and the operation is no longer in flight. Thread-safe.
    void allocated(CUmemoryPool pool, std::uint64_t reserved, Budget& budget);

    // Reads every pool's figure again; with `trim`, after telling each to give back what it holds in reserve.
    // Thread-safe.
    void refresh(Budget& budget, bool trim);

    // A pool that the program made on this GPU. Thread-safe.
    void created(CUmemoryPool pool);
    bool knows(CUmemoryPool pool);

    // The pool is gone, and what it kept with it. Thread-safe.
    void destroyed(CUmemoryPool pool, Budget& budget);

    std::uint64_t charged() const { return total_.load(std::memory_order_relaxed); }
    bool any() const { return charged() != 0; }
    Mutex& mutex() { return mutex_; }

  private:
    struct Pool {
        CUmemoryPool handle;
        std::uint64_t charged;
    };
    Pool* find(CUmemoryPool pool);
    void charge(Pool& pool, std::uint64_t bytes, Budget& budget);

    Mutex mutex_;
    PageVector<Pool> pools_;
    std::atomic<std::uint64_t> total_{0};
};

}  // namespace cuslice
