// SPDX-License-Identifier: Apache-2.0
#include "policy/lease/queue_depth.h"

#include <algorithm>

namespace cuslice::lease {

namespace {

// One runs, and one is there when it ends.
constexpr uint64_t kLeast = 2;
constexpr uint64_t kSlower = 4;

}  // namespace

void QueueDepth::begin(uint64_t launched) {
    step_ = std::max<uint64_t>(step_ / kSlower, 1);
    allowed_ = launched + kLeast * gpus_ * step_;
    last_ = launched;
    last_at_ = 0;
}

// Too long a time where the GPU was idle in between: then the program is not ahead of it, and the bound doesn't matter.
void QueueDepth::passed(uint64_t launch, uint64_t now) {
    if (last_at_ && launch > last_) {
        const uint64_t each = std::max<uint64_t>((now - last_at_) / (launch - last_), 1);
        step_ = std::clamp<uint64_t>(target_ / each, 1, kMost);
    }
    last_ = launch;
    last_at_ = now;
    allowed_ = std::max(allowed_, launch + kLeast * gpus_ * step_);
}

}  // namespace cuslice::lease
