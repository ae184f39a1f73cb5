// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>

namespace cuslice {

// Called before this process gives memory back, with locks of caches held: a process holds most just before it frees.
// Null unless somebody wants to know what it was that it held (shim/driver/holdings.h).
extern constinit std::atomic<void (*)()> before_freeing;

}  // namespace cuslice
