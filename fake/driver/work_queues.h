// SPDX-License-Identifier: Apache-2.0
#pragma once
// State that all queues share.

#include <condition_variable>
#include <mutex>

namespace cuslice::fake {

extern std::mutex queues_lock;

/// Told whenever work of some queue is done.
std::condition_variable& progress();

}  // namespace cuslice::fake
