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
    last_after_ = 0;
}

// The longest that the launches between two marks may have taken: where a look at the first one was late they would
// seem to take no time, and the queue would have no bound. Too long also where the GPU was idle in between: then the
// program is not ahead of it, and the bound doesn't matter.
void QueueDepth::passed(uint64_t launch, uint64_t after, uint64_t now) {
    if (last_after_ && launch > last_) {
        const uint64_t each = std::max<uint64_t>((now - last_after_) / (launch - last_), 1);
        step_ = std::clamp<uint64_t>(target_ / each, 1, kMost);
    }
    last_ = launch;
    last_after_ = after;
    allowed_ = std::max(allowed_, launch + kLeast * gpus_ * step_);
}

}  // namespace cuslice::lease
