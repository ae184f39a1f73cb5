#pragma once
// What all lanes share.

#include <condition_variable>
#include <mutex>

namespace cuslice::fake {

extern std::mutex lanes_lock;

/// Told whenever work of some lane is done.
std::condition_variable& progress();

}  // namespace cuslice::fake
