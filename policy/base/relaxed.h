// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>

namespace cuslice {

// A value that any thread may read without a lock: what it sees was there at some time. One thread at a time writes it,
// under whatever lock, or it doesn't matter which of several writes is lost. Costs what a plain one costs.
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
