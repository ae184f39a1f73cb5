// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>

#include "policy/base/machine.h"

namespace cuslice {

// A count that one thread at a time writes and any thread reads.
class OwnCount {
  public:
    OwnCount() = default;
    OwnCount(const OwnCount& other) : value_(other.get()) {}
    void add(uint64_t n) { add_alone(value_, n); }
    void reset() { value_.store(0, std::memory_order_relaxed); }
    uint64_t get() const { return value_.load(std::memory_order_acquire); }

  private:
    std::atomic<uint64_t> value_{0};
};

// Bytes and blocks that a thread, or a part of the allocator under its lock, has handed out and taken back.
struct Traffic {
    OwnCount allocated, freed;                      // bytes
    OwnCount requested_allocated, requested_freed;  // bytes
    OwnCount allocations, frees;

    void allocate(uint64_t bytes, uint64_t requested) {
        allocated.add(bytes);
        requested_allocated.add(requested);
        allocations.add(1);
    }
    void free(uint64_t bytes, uint64_t requested) {
        freed.add(bytes);
        requested_freed.add(requested);
        frees.add(1);
    }
    void reset() {
        for (OwnCount* count : {&allocated, &freed, &requested_allocated, &requested_freed, &allocations, &frees})
            count->reset();
    }
    void add_taken(const Traffic& other) {
        allocated.add(other.allocated.get());
        requested_allocated.add(other.requested_allocated.get());
        allocations.add(other.allocations.get());
    }
    void add_freed(const Traffic& other) {
        freed.add(other.freed.get());
        requested_freed.add(other.requested_freed.get());
        frees.add(other.frees.get());
    }
    void add(const Traffic& other) { add_freed(other), add_taken(other); }

    // Bytes that are out. Of what threads count for themselves also what came and went while it was added up.
    uint64_t out() const { return allocated.get() - freed.get(); }
    uint64_t requested_out() const { return requested_allocated.get() - requested_freed.get(); }
};

// Bytes that have come into other hands under one lock, since that was last reported. Read and reset without the lock,
// so it may be a little wrong, but for what is to be reported at once.
class MovedBytes {
  public:
    void add(uint64_t bytes) { add_alone(bytes_, bytes); }
    void at_once() { bytes_.store(kAtOnce, std::memory_order_relaxed); }
    uint64_t get() const { return bytes_.load(std::memory_order_relaxed); }
    void reset() { bytes_.store(0, std::memory_order_relaxed); }

  private:
    // More than can move before anybody reports it, and no overflow with that on top of it.
    static constexpr uint64_t kAtOnce = 1ull << 60;
    std::atomic<uint64_t> bytes_{0};
};

}  // namespace cuslice
