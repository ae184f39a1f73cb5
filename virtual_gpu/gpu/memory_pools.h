// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "policy/base/event_count.h"
#include "policy/base/mutex.h"
#include "policy/base/page_vector.h"
#include "policy/budget/budget.h"
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
// budget beforehand, by each thread for itself, and released once the pool's own figure has been read:
//
//     Growing → reserve at_most() → the driver's allocation → allocated
//
// Near the limit there may be no room for that, while the pool keeps enough that nobody uses. Then the allocation may
// go ahead without a reservation, as long as nobody else can take what it relies on.
class MemoryPools {
    struct Pool;

  public:
    // An allocation's claim on a pool while it is inside the driver.
    struct Inside {
        CUmemoryPool pool = nullptr;
        uint64_t bytes = 0, at_most = 0;
        bool on_spare = false;
    };

    // One allocation of `bytes` from a pool, while it may be inside the driver. No lock is held meanwhile.
    class Growing {
      public:
        // Enters, if it may.
        Growing(MemoryPools& pools, CUmemoryPool pool, uint64_t bytes);
        ~Growing() {
            if (where_ != Where::outside)
                leave();
        }
        Growing(const Growing&) = delete;
        Growing& operator=(const Growing&) = delete;

        // The most that the pool can take of the GPU for it, as far as it has been seen to grow.
        uint64_t at_most() const { return at_most_; }

        // With what it needs reserved, or about to be. False if somebody relies on what the pool has to spare.
        bool enter() { return where_ == Where::reserved || enter_now(); }
        // The same, after waiting until nobody does. From outside.
        void enter_when_free();
        // Without a reservation: false if the pool may have to grow for this allocation, or for one of the others that
        // are inside; with `wait`, only after some of these have come out.
        bool enter_on_spare(bool wait = false);
        void leave();

        // It succeeded, and `reserved` bytes were taken from the budget and are in flight: the charge becomes the
        // pool's own figure, and the operation is no longer in flight. It leaves.
        void allocated(uint64_t reserved, Budget& budget);

      private:
        friend MemoryPools;
        Inside inside() const { return {pool_, bytes_, at_most_, where_ == Where::on_spare}; }
        enum class Where : uint8_t { outside, reserved, on_spare };
        bool enter_now();
        void end(Pool* pool) CUSLICE_REQUIRES(pools_.mutex_);
        MemoryPools& pools_;
        CUmemoryPool pool_;
        uint64_t bytes_, at_most_ = 0;
        Where where_ = Where::outside;
    };

    // A device's memory for graphs, where a pool is named.
    static constexpr CUmemoryPool kGraphs = nullptr;

    // Before any other use.
    void open(CUdevice device) { device_ = device; }

    // Until what was taken beforehand for the allocations that are inside now has become what it came to: as many as
    // there are have ended. Not from inside. Thread-safe.
    void await_growth();

    // Reads every pool's figure again; with `trim`, after telling each to give back what it holds in reserve.
    // Thread-safe.
    void refresh(Budget& budget, bool trim);

    // A pool that the program made on this GPU. Thread-safe.
    void created(CUmemoryPool pool);
    bool knows(CUmemoryPool pool);

    // True if allocations of the pool are out. Its end waits for the last of them then. Thread-safe.
    bool has_allocations(CUmemoryPool pool) const;

    // The pool can't be asked any more. What is charged for it, which is the caller's now. Thread-safe.
    uint64_t destroyed(CUmemoryPool pool);

    uint64_t charged() const { return total_.load(std::memory_order_relaxed); }
    bool any() const { return charged() != 0; }

    // In a forked child, where nobody is inside.
    void forget();
    // Cleans up after this thread has left a call by a longjmp. It holds no lock any more.
    void leave();

  private:
    // An H200's driver lets pools grow by this (docs/results/). What other drivers do is seen when a pool grows.
    static constexpr uint64_t kBelievedStep = 32 << 20;

    struct Pool {
        CUmemoryPool handle;
        uint64_t charged;
        uint64_t step;  // it grows by a multiple of this, as far as is known
        uint64_t read;  // the number of the reading that was charged
        // Totals of the allocations inside: their number, the bytes that they asked for, the most that the pool can
        // grow by for all of them, and the number of those that rely on its spare memory.
        uint64_t inside, asked, at_most, on_spare;
        uint64_t ended;  // how many have been inside
        bool told;       // the driver has told its figure before
    };
    // A pool's own figure at some time after `number` was drawn. A thread's growth is in every reading that begins
    // after its allocation; so what is charged is always the one that began last, and no lock is held over the driver's
    // call.
    struct Reading {
        uint64_t number = 0, bytes = 0;
        bool known = false, gone = false;  // gone: the driver knows no such pool
    };
    CUresult read(CUmemoryPool pool, CUmemPool_attribute attribute, uint64_t* bytes) const;
    Reading read_reserved(CUmemoryPool pool);
    Pool* find(CUmemoryPool pool) CUSLICE_REQUIRES(mutex_);
    Pool* find_or_add(CUmemoryPool pool) CUSLICE_REQUIRES(mutex_);
    Pool* add(CUmemoryPool pool) CUSLICE_REQUIRES(mutex_);
    bool charge(Pool& pool, const Reading& reading, Budget& budget) CUSLICE_REQUIRES(mutex_);
    void charge(Pool& pool, uint64_t bytes, Budget& budget) CUSLICE_REQUIRES(mutex_);
    bool note(Pool& pool, const Reading& reading) CUSLICE_REQUIRES(mutex_);
    void become(Pool& pool, uint64_t bytes, uint64_t reserved, Budget& budget) CUSLICE_REQUIRES(mutex_);
    bool begin(Pool* pool, Growing& growing, Growing::Where where) CUSLICE_REQUIRES(mutex_);
    void come_out(Pool* pool, const Inside& ended) CUSLICE_REQUIRES(mutex_);

    CUdevice device_ = 0;
    Mutex mutex_{LockRank::pools};  // over pools_
    PageVector<Pool> pools_ CUSLICE_GUARDED_BY(mutex_);
    std::atomic<uint64_t> readings_{0};
    EventCount ended_;
    std::atomic<uint64_t> total_{0};
};

}  // namespace cuslice
