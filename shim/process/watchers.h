// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "virtual_gpu/gpu/sharing.h"

namespace cuslice {

// This process's view of the accounts on a GPU that it has not opened through CUDA: one for each such GPU, never
// closed (see GpuSharing::watch). Null if there are too many. Thread-safe.
GpuSharing* watcher_of(const char* uuid);

// In a forked child: all of it is the parent's.
void forget_watchers();

}  // namespace cuslice
