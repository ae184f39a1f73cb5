// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>

namespace cuslice {

// A value that one thread at a time writes, under whatever lock, and any thread may read without it: what it sees was
// there at some time. Costs what a plain one costs.
template <typename T>
class Relaxed {
  public:
    constexpr Relaxed(T value = {}) : value_(value) {}
    operator T() const { return value_.load(std::memory_order_relaxed); }
    Relaxed& operator=(T value) {
        value_.store(value, std::memory_order_relaxed);
        return *this;
    }
    Relaxed& operator+=(T more) { return *this = *this + more; }

  private:
    std::atomic<T> value_;
};

}  // namespace cuslice
