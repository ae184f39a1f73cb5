// SPDX-License-Identifier: Apache-2.0
// The GPUs in a frame of `cuslice top`. Pure.
#pragma once

#include "cli/top/frame.h"
#include "cli/top/snapshot.h"

namespace cuslice::cli::top {

/// Adds each GPU with a bar of its memory, its sensors and its last moments; or why there is none.
void append_gpus(const Snapshot& snapshot, const Look& look, Lines& lines);
/// The pieces of a bar.
Line legend(const Look& look);

}  // namespace cuslice::cli::top
