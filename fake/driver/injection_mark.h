// SPDX-License-Identifier: Apache-2.0
#pragma once
// The trace of an injected item that has happened: an empty file, named as the item, in `injected/` of the machine's
// folder. Nothing is written unless that folder exists: whoever wants to know makes it (python/cuslice/fake.py).

#include <atomic>
#include <string>

namespace cuslice::fake {

class InjectionMark {
  public:
    explicit InjectionMark(std::string item) : item_(std::move(item)) {}

    /// Notes that the item has happened in this process. Any thread; leaves errno as it is.
    void note() {
        if (!noted_.load(std::memory_order_relaxed))
            write();
    }

  private:
    void write();

    const std::string item_;
    std::atomic<bool> noted_{false};
};

}  // namespace cuslice::fake
