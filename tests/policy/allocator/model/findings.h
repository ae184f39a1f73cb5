// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>

namespace cuslice::model {

// Broken promises: their number, and a description of the first. Threads go on after it, as its consequences show that
// it is real.
class Findings {
  public:
    void note(const char* what, uint64_t address = 0, uint64_t more = 0) {
        if (count_.fetch_add(1, std::memory_order_relaxed) != 0)
            return;
        char text[160];
        std::snprintf(text, sizeof text, "%s (0x%llx, %llu)", what, static_cast<unsigned long long>(address),
                      static_cast<unsigned long long>(more));
        const std::lock_guard lock(mutex_);
        first_ = text;
    }
    void expect(bool holds, const char* what, uint64_t address = 0, uint64_t more = 0) {
        if (!holds)
            note(what, address, more);
    }
    unsigned count() const { return count_.load(std::memory_order_relaxed); }
    std::string first() const {
        const std::lock_guard lock(mutex_);
        return first_;
    }

  private:
    std::atomic<unsigned> count_{0};
    mutable std::mutex mutex_;
    std::string first_;
};

}  // namespace cuslice::model
