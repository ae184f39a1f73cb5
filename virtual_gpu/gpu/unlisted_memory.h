// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>

#include "policy/base/mutex.h"
#include "policy/budget/budget.h"
#include "policy/budget/in_flight.h"
#include "virtual_gpu/nvml/nvml_gpu.h"

namespace cuslice {

/// Exported memory of cuMemCreate that this process has released on one GPU while a descriptor or another process keeps
/// it there. NVML lists no process with it (an H200, driver 580.159.04, 2026-11-27), only what is in use on the GPU has
/// it. Its budget stays charged with it until that has fallen by as much, counted from before the release: others'
/// memory that NVML lists nobody with moves the same figure, so the charge may stay longer, or go earlier.
///
/// Thread-safe once open. No lock is held while NVML is asked.
class UnlistedMemory {
  public:
    /// `pid`: under which NVML lists this process. `frees`: releases under way. `mutex`: over what is known.
    void open(const NvmlGpu& nvml, unsigned pid, const InFlight& frees, Mutex& mutex);

    /// Before the driver is asked for a release after which others may keep the memory, which end() follows. `own`:
    /// bytes of this process's allocations on the GPU. Returns bytes that no process is listed with, those kept here
    /// included; 0 where that can't be told, so that what is kept stays charged.
    uint64_t begin(uint64_t own);
    /// It has been released, and `from` stays charged with it. `before`: as begin() had it. With the lock held.
    void keep(uint64_t bytes, Budget& from, uint64_t before);
    void end() { under_way_.fetch_sub(1, std::memory_order_release); }

    /// Releases the charge of what is gone from the GPU.
    void look();

    /// Bytes that are charged and that NVML's figure of this process hasn't; with the lock held.
    uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
    /// NVML's figure of this process may be less than what it holds. A release notes its bytes before it ends, so its
    /// end is read first.
    bool any() const { return under_way_.load(std::memory_order_acquire) != 0 || bytes() != 0; }

  private:
    static constexpr unsigned kMaxBudgets = 64;
    struct Part {
        Budget* budget;
        uint64_t bytes;
    };
    void let_go(uint64_t left);

    NvmlGpu nvml_;
    unsigned pid_ = 0;
    const InFlight* frees_ = nullptr;
    Mutex* mutex_ = nullptr;
    std::atomic<uint64_t> bytes_{0};      // of all parts; changed with the lock held
    std::atomic<unsigned> under_way_{0};  // releases between begin() and end()
    uint64_t before_ = 0;                 // what no process was listed with, without these; with the lock held
    Part parts_[kMaxBudgets] = {};        // with the lock held
    unsigned count_ = 0;
};

}  // namespace cuslice
