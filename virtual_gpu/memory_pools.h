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
//
// The memory that a device keeps for its graphs is like a pool, kGraphs: it grows when a graph is launched, and falls
// when it is trimmed.
//
// By how much a pool grows for an allocation is seen only afterwards. So the most that it can be is taken from the
// budget beforehand, and pools grow one at a time:
//
//     Growing → growth_at_most → reserve → the driver's allocation → allocated
class MemoryPools {
  public:
    // Held over an allocation, the driver's call included: the growths of several threads can't be told apart. No lock
    // that anything but an allocation from a pool (or one that is about to be refused) waits for.
    class Growing {
      public:
        explicit Growing(MemoryPools& pools) : pools_(pools) {
            pools_.growing_.lock();
            here_ = this;
        }
        ~Growing() {
            here_ = outer_;
            pools_.growing_.unlock();
        }
        Growing(const Growing&) = delete;
        Growing& operator=(const Growing&) = delete;

      private:
        friend MemoryPools;
        static bool here(const MemoryPools& pools) {
            const Growing* growing = here_;
            while (growing && &growing->pools_ != &pools) growing = growing->outer_;
            return growing != nullptr;
        }
        MemoryPools& pools_;
        Growing* outer_ = here_;                       // a graph can have memory on several GPUs
        static constinit thread_local Growing* here_;  // what this thread is in the middle of
    };

    // A device's memory for graphs, where a pool is named.
    static constexpr CUmemoryPool kGraphs = nullptr;

    // Before any other use.
    void open(CUdevice device) { device_ = device; }

    // The most that the pool can take of the GPU when `bytes` are asked of it, as far as it has been seen to grow.
    // Thread-safe.
    std::uint64_t growth_at_most(CUmemoryPool pool, std::uint64_t bytes);

    // Whether the pool holds so much that nobody uses, so that it may not have to grow. Thread-safe.
    bool has_spare(CUmemoryPool pool, std::uint64_t bytes) const;

    // After an allocation of `bytes` from `pool` succeeded for which `reserved` bytes were taken from the budget and
    // are in flight: the charge becomes the pool's own figure, and the operation is no longer in flight. Thread-safe.
    void allocated(CUmemoryPool pool, std::uint64_t bytes, std::uint64_t reserved, Budget& budget);

    // Until what was taken beforehand for a growth under way has become what it came to.
    void await_growth() {
        if (!Growing::here(*this)) LockGuard lock(growing_);
    }

    // Reads every pool's figure again; with `trim`, after telling each to give back what it holds in reserve.
    // Thread-safe.
    void refresh(Budget& budget, bool trim);

    // A pool that the program made on this GPU. Thread-safe.
    void created(CUmemoryPool pool);
    bool knows(CUmemoryPool pool);

    // Whether allocations of the pool are out. Its end waits for the last of them then. Thread-safe.
    bool has_allocations(CUmemoryPool pool) const;

    // The pool can't be asked any more. What is charged for it, which is the caller's now. Thread-safe.
    std::uint64_t destroyed(CUmemoryPool pool);

    std::uint64_t charged() const { return total_.load(std::memory_order_relaxed); }
    bool any() const { return charged() != 0; }

    // Around fork(), so that no lock is held by a thread that the child does not have.
    void lock_growing();
    void lock_rest() { mutex_.lock(); }
    void unlock_all();

  private:
    // Drivers are believed to let pools grow by this, or a multiple (not measured here yet), until one is seen to grow.
    static constexpr std::uint64_t kBelievedStep = 32 << 20;

    struct Pool {
        CUmemoryPool handle;
        std::uint64_t charged;
        std::uint64_t step;  // it grows by a multiple of this, as far as is known
    };
    bool read(CUmemoryPool pool, CUmemPool_attribute attribute, std::uint64_t* bytes) const;
    bool reserved_by(CUmemoryPool pool, std::uint64_t* bytes) const {
        return read(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, bytes);
    }
    Pool* find(CUmemoryPool pool);
    Pool* find_or_add(CUmemoryPool pool);
    void charge(Pool& pool, std::uint64_t bytes, Budget& budget);

    CUdevice device_ = 0;
    Mutex growing_;  // before mutex_, if both
    Mutex mutex_;    // over pools_
    PageVector<Pool> pools_;
    std::atomic<std::uint64_t> total_{0};
};

}  // namespace cuslice
