// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>

#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice {

// Pools that are known to give managed memory: what is allocated from them is charged before the driver is asked. Of
// one that isn't here, as a place's default pool or one too many, the driver tells by its first allocation.
// Thread-safe, without a lock; destroying a pool while it is used is the program's error.
class ManagedPools {
  public:
    void add(CUmemoryPool pool) {
        for (auto& place : pools_) {
            CUmemoryPool nothing = nullptr;
            if (place.compare_exchange_strong(nothing, pool, std::memory_order_acq_rel) || nothing == pool)
                return;
        }
    }
    void remove(CUmemoryPool pool) {
        for (auto& place : pools_) {
            CUmemoryPool known = pool;
            place.compare_exchange_strong(known, nullptr, std::memory_order_acq_rel);
        }
    }
    bool has(CUmemoryPool pool) const {
        for (const auto& place : pools_)
            if (place.load(std::memory_order_acquire) == pool)
                return true;
        return false;
    }

  private:
    std::atomic<CUmemoryPool> pools_[32] = {};
};

}  // namespace cuslice
