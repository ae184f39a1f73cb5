// SPDX-License-Identifier: Apache-2.0
// Limits that hold nothing back, and limits and parts that leave no room for a context. Where the size of a context is
// known before the program starts, as on fake GPUs, it is said then: its first context will be refused.
#pragma once

#include "cli/gpus/fake_check.h"
#include "cli/gpus/machine.h"
#include "cli/gpus/selection.h"

namespace cuslice::cli {

/// A line for each GPU whose limit is smaller than a context there, or of whose parts some are.
void warn_too_small(const Settings& settings, const ContextSizes& contexts, Machine& machine,
                    const Selection& selection);

/// A line for the first GPU that has less memory than the option --limit says, among those that are known by now.
void warn_too_large(const Settings& settings, const Machine& machine, const Selection& selection);

}  // namespace cuslice::cli
