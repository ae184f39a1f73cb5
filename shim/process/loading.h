// SPDX-License-Identifier: Apache-2.0
// The lock over what a process loads and opens.
#pragma once
#include "policy/base/cancellation.h"
#include "policy/base/mutex.h"

namespace cuslice {

// While a thread loads it may fork: drivers start nvidia-modprobe. Its own lock it has then already (LockList::take).
class Loading {
  public:
    explicit Loading(Mutex& mutex) : lock_(mutex) {}

  private:
    DisableCancellation uncancelled_;
    LockGuard lock_;
};

}  // namespace cuslice
