// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counts and reports kernels that were launched and not run. Any thread.

#include "fake/driver/image.h"
#include "fake/driver/work_queue.h"

namespace cuslice::fake {

/// Task of a kernel launch: counts the launch when its turn comes.
Task skip_kernel();

/// Says once that kernels aren't run; and once of the first whose image can't be read that it wasn't checked either.
void log_skipped(const KernelInfo& info, const Image& image);

/// Says how many launches were skipped, if any were: at the end of the process.
void log_all_skipped();

}  // namespace cuslice::fake
