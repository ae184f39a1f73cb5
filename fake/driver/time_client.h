// SPDX-License-Identifier: Apache-2.0
#pragma once
// The process's way to the timekeeper.

#include "fake/time/client.h"

namespace cuslice::fake {

/// Null where work takes no time. Set once, by cuInit.
inline constinit TimeClient* time_client = nullptr;

}  // namespace cuslice::fake
